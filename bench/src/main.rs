//! `make bench`: agentbox beside its peers, interleaved in one run; medians and ratios as a table on stderr and
//! as JSON on stdout. Root starts it; what is measured as an ordinary user is measured by a worker of that user.

mod contender;
mod cycles;
mod exec;
mod goal;
mod idle;
mod kernel;
mod leaks;
mod mapped;
mod statistics;
mod throughput;
mod together;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use goal::Line;
use rustix::process::geteuid;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Cycles of each contender, one after the other.
    pub(crate) cycles: usize,
    /// Sandboxes at once.
    pub(crate) together: usize,
    /// Cycles in a row before leaks are counted.
    pub(crate) endurance: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let form = words.first().copied().unwrap_or("whole");
    let effort = match form {
        "whole" => Effort { cycles: 60, together: 100, endurance: 2000 },
        "quick" => Effort { cycles: 15, together: 30, endurance: 200 },
        other => bail!("'{other}' is neither whole nor quick"),
    };
    let parts = Parts(words.get(1..).unwrap_or_default());
    let mut lines = Vec::new();
    if geteuid().is_root() {
        for user in ["agentbox-plain", "agentbox-sub"] {
            eprintln!("measuring as {user} …");
            lines.extend(worker(user, &words)?);
            if parts.include("idle") {
                lines.push(idle::measure(user, effort)?);
            }
        }
        eprintln!("measuring as root …");
        lines.extend(measure_as_root(effort, parts)?);
        goal::print_table(&lines);
    } else {
        lines.extend(measure_as_user(effort, parts)?);
    }
    println!("{}", serde_json::to_string_pretty(&lines)?);
    Ok(())
}

/// What is measured: the named parts, or all.
#[derive(Clone, Copy)]
struct Parts<'words>(&'words [&'words str]);

impl Parts<'_> {
    fn include(self, part: &str) -> bool {
        self.0.is_empty() || self.0.contains(&part)
    }
}

fn measure_as_user(effort: Effort, parts: Parts<'_>) -> Result<Vec<Line>> {
    let who = std::env::var("USER").unwrap_or_default();
    let mut lines = measure_as_anyone(&who, effort, parts)?;
    if parts.include("throughput") {
        lines.push(throughput::measure(&who)?);
    }
    Ok(lines)
}

fn measure_as_root(effort: Effort, parts: Parts<'_>) -> Result<Vec<Line>> {
    let mut lines = measure_as_anyone("root", effort, parts)?;
    if parts.include("kernel") {
        lines.extend(kernel::cgroups(effort)?);
    }
    if parts.include("leaks") {
        lines.push(leaks::measure(effort)?);
    }
    Ok(lines)
}

fn measure_as_anyone(who: &str, effort: Effort, parts: Parts<'_>) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if parts.include("cycles") {
        lines.extend(cycles::measure(who, effort)?);
    }
    if parts.include("exec") {
        lines.push(exec::measure(who, effort)?);
    }
    if parts.include("together") {
        lines.push(together::measure(who, effort)?);
    }
    Ok(lines)
}

/// Measures as another user, in a process of that user's.
fn worker(user: &str, words: &[&str]) -> Result<Vec<Line>> {
    let ids = ["--reuid", user, "--regid", user, "--init-groups", "--reset-env"];
    let output = Command::new("setpriv")
        .args(ids)
        .arg(directory()?.join("agentbox-bench"))
        .args(words)
        .stderr(Stdio::inherit())
        .output()
        .context("setpriv")?;
    if !output.status.success() {
        bail!("the measurement as {user} failed");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Where the programs stand: beside this one.
pub(crate) fn directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().context("no directory")?.to_owned())
}

/// The runtime directory of whoever measures.
pub(crate) fn runtime() -> PathBuf {
    let uid = geteuid();
    if uid.is_root() {
        PathBuf::from("/run/agentbox/sandboxes")
    } else {
        PathBuf::from(format!("/tmp/agentbox-{}/sandboxes", uid.as_raw()))
    }
}
