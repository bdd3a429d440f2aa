//! What an idle sandbox holds: the proportional memory of its keeper, supervisor and init, many of them
//! running. A supervisor and an init hide theirs from everyone but root, so root reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use anyhow::{Context as _, Result};

use crate::Effort;
use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::together::end;

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Line> {
    let contender = Contender::agentbox()?.started_by(who);
    let mut processes = Vec::new();
    for _ in 0..effort.together {
        let mut command = contender.command(&["/bin/sh", "-c", "echo; read line"]);
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
fn sums_by_role() -> Result<BTreeMap<&'static str, u64>> {
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(name) = fs::read_to_string(entry.path().join("comm")) else { continue };
        let role = match name.trim_end() {
            "agentbox-keeper" => "keeper",
            "agentbox-superv" => "supervisor",
            "init" => "init",
            _ => continue,
        };
        let Ok(rollup) = fs::read_to_string(entry.path().join("smaps_rollup")) else { continue };
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).context("no Pss")?;
        let kibibytes: u64 = pss.trim().trim_end_matches(" kB").trim().parse()?;
        *sums.entry(role).or_insert(0) += kibibytes;
    }
    Ok(sums)
}
