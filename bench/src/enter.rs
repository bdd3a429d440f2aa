//! `agentbox exec` of /bin/true by the command line, beside `nsenter` into the same sandbox's namespaces, and beside the
//! `exec` of others into containers of theirs.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rustix::process::geteuid;

use crate::Effort;
use crate::container::Container;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::{Sandbox, state, succeed};
use crate::statistics::{median_milliseconds, percentile_milliseconds};

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Line> {
    let sandbox = Sandbox::create(&Caller::default())?;
    let [_, init, _] = sandbox.processes(&state()?)?;
    let mut ways = vec![("agentbox".to_owned(), sandbox.exec()?), ("nsenter".to_owned(), nsenter(init))];
    let bundles = std::env::temp_dir().join("containers");
    let containers = if geteuid().is_root() { Container::all(&bundles) } else { Vec::new() };
    ways.extend(containers.iter().map(|container| (container.name.to_owned(), container.exec())));
    // Once each before it counts: pages are cached, and what does not work says so.
    for (_, command) in &mut ways {
        succeed(command)?;
    }
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..effort.cycles * 4 {
        for ((_, command), times) in ways.iter_mut().zip(&mut times) {
            times.push(succeed(command)?);
        }
    }
    drop(containers);
    remove(&bundles)?;
    let medians: Vec<f64> = times.iter().map(|times| median_milliseconds(times)).collect();
    let mut measured: Vec<(String, String)> = ways
        .iter()
        .zip(&medians)
        .map(|((name, _), median)| (name.clone(), format!("{median:.2} ms")))
        .collect();
    let slowest = percentile_milliseconds(&times[0], 99);
    measured.insert(1, ("agentbox p99".to_owned(), format!("{slowest:.2} ms")));
    Ok(Line {
        what: format!("exec by the command line, {who} (× nsenter)"),
        measured,
        value: Some(medians[0] / medians[1]),
        goal: Some(Bound::AtMost(1.2)),
        floor: Some(Bound::AtMost(2.0)),
    })
}

/// The same program by way of nsenter, which joins the namespaces and sets up nothing else.
fn nsenter(init: i32) -> Command {
    let namespaces = ["--user", "--mount", "--pid", "--net", "--ipc", "--uts", "--preserve-credentials"];
    let mut command = Command::new("nsenter");
    command.arg("--target").arg(init.to_string()).args(namespaces).arg("/bin/true");
    command
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}
