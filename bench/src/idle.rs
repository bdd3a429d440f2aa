//! What an idle sandbox holds: the proportional memory of its keeper, supervisor and init, many of them
//! running. A supervisor and an init hide theirs from everyone but root, so root reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Place;
use crate::together::end;

pub(crate) fn measure(who: &str, place: &Place, effort: Effort) -> Result<Line> {
    let mut processes = Vec::new();
    for _ in 0..effort.together {
        let run = ["run", "--", "/bin/sh", "-c", "echo; read line"];
        let mut command = place.caller().agentbox(&run)?;
        command.stderr(Stdio::null());
        processes.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    }
    for process in &mut processes {
        process.stdout.as_mut().context("no stdout")?.read_exact(&mut [0])?;
    }
    let sums = sums_by_role()?;
    processes.into_iter().try_for_each(end)?;
    let each =
        |role: &str| sums.get(role).copied().unwrap_or_default() as f64 / effort.together as f64 / 1024.0;
    let value = each("keeper") + each("supervisor") + each("init");
    let roles = ["keeper", "supervisor", "init"];
    Ok(Line {
        what: format!("idle sandbox, PSS, {} running, {who} (MiB)", effort.together),
        measured: roles.iter().map(|role| ((*role).to_owned(), format!("{:.2} MiB", each(role)))).collect(),
        value: Some(value),
        goal: Some(Bound::AtMost(4.0)),
        floor: Some(Bound::AtMost(8.0)),
    })
}

/// KiB of each role over all processes of ours.
pub(crate) fn sums_by_role() -> Result<BTreeMap<&'static str, u64>> {
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(name) = fs::read_to_string(entry.path().join("comm")) else { continue };
        let role = match name.trim_end() {
            "agentbox-keeper" => "keeper",
            "agentbox-superv" => "supervisor",
            "init" => "init",
            _ => continue,
        };
        let Some(kibibytes) = proportional_kibibytes(&entry.path()) else { continue };
        *sums.entry(role).or_insert(0) += kibibytes;
    }
    Ok(sums)
}

/// The proportional memory of a process, by its directory in /proc; none where it has ended.
pub(crate) fn proportional_kibibytes(process: &Path) -> Option<u64> {
    let rollup = fs::read_to_string(process.join("smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}
