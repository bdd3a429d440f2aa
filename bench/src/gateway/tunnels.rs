//! Very many tunnels that are open and idle: that all of them are held, and how much the supervisor of the sandbox grows
//! for each.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::network::Network;
use super::task::Task;
use super::way::Way;
use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Place;

/// As many come and go first, so that what is only made once is there.
const WARMING: usize = 64;

/// How long what is used no more may take to be given back.
const SETTLING: Duration = Duration::from_millis(500);

pub(super) fn measure(network: &Network, place: &Place, effort: Effort) -> Result<[Line; 2]> {
    let mut way = Way::agentbox(network, place)?;
    let [_, _, supervisor] = way.sandbox.as_ref().context("no sandbox")?.processes(&place.state())?;
    way.ask(Task::Hold { tunnels: WARMING })?;
    way.ask(Task::LetGo)?;
    std::thread::sleep(SETTLING);
    let before = resident_kibibytes(supervisor)?;
    let held = way.ask(Task::Hold { tunnels: effort.tunnels })?.count as f64;
    std::thread::sleep(SETTLING);
    let during = resident_kibibytes(supervisor)?;
    way.ask(Task::LetGo)?;
    std::thread::sleep(SETTLING);
    let after = resident_kibibytes(supervisor)?;
    let wanted = effort.tunnels as f64;
    let holding = Line {
        what: format!("{} idle tunnels of one sandbox, held, root", effort.tunnels),
        measured: vec![("agentbox".to_owned(), held.to_string())],
        value: Some(held),
        goal: Some(Bound::AtLeast(wanted)),
        floor: Some(Bound::AtLeast(wanted)),
    };
    let costing = Line {
        what: format!("the supervisor with {held} idle tunnels, root (KiB more for each)"),
        measured: [("before", before), ("with them", during), ("after them", after)]
            .map(|(name, kibibytes)| (name.to_owned(), format!("{:.1} MiB", kibibytes / 1024.0)))
            .into(),
        value: (held > 0.0).then_some((during - before) / held),
        goal: Some(Bound::AtMost(16.0)),
        floor: Some(Bound::AtMost(48.0)),
    };
    Ok([holding, costing])
}

fn resident_kibibytes(process: i32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
