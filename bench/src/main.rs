//! `make bench`: agentbox beside its peers, interleaved in one run; medians and ratios as a table on stderr and
//! as JSON on stdout. Root starts it; what is measured as an ordinary user is measured by a worker of that user.

mod alone;
mod clients;
mod container;
mod contender;
mod copy;
mod cycles;
mod enter;
mod exec;
mod gateway;
mod goal;
mod gvisor;
mod idle;
mod images;
mod interrupt;
mod kernel;
mod leaks;
mod many;
mod mapped;
mod place;
mod ratio;
mod remains;
mod review;
mod sandbox;
mod statistics;
mod throughput;
mod together;
mod turnover;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use goal::Line;
use place::Place;
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
    /// Sandboxes that stay and idle.
    pub(crate) idle: usize,
    /// Sandboxes that are made, used and removed before leaks are counted.
    pub(crate) turnover: usize,
    /// The size of the file that is copied.
    pub(crate) copied_mebibytes: usize,
    /// The files in the tree that is copied.
    pub(crate) copied_files: usize,
    /// How often each client of the network has its turn.
    pub(crate) turns: usize,
    /// What is read over one connection.
    pub(crate) read_mebibytes: u64,
    /// How long small requests are made in a turn.
    pub(crate) request_milliseconds: u64,
    /// Tunnels of one sandbox that idle.
    pub(crate) tunnels: usize,
    /// The files of the repository that is worked on under review.
    pub(crate) repository_files: usize,
}

const QUICK: Effort = Effort {
    cycles: 15,
    together: 30,
    endurance: 200,
    idle: 100,
    turnover: 300,
    copied_mebibytes: 256,
    copied_files: 4000,
    turns: 3,
    read_mebibytes: 256,
    request_milliseconds: 300,
    tunnels: 1000,
    repository_files: 4000,
};

const WHOLE: Effort = Effort {
    cycles: 60,
    together: 100,
    endurance: 2000,
    idle: 1000,
    turnover: 1000,
    copied_mebibytes: 1024,
    copied_files: 20_000,
    turns: 5,
    read_mebibytes: 1024,
    request_milliseconds: 1000,
    tunnels: 5000,
    repository_files: 20_000,
};

/// The first word of a process that measures for another.
const WORKER: &str = "worker";

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
    interrupt::watch()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&gateway::SERVERS, _)) => return gateway::serve(),
        Some((&gateway::CLIENT, rest)) => return gateway::work(rest),
        _ => {}
    }
    let (is_worker, words) = match words.split_first() {
        Some((&WORKER, rest)) => (true, rest),
        _ => (false, words.as_slice()),
    };
    let effort = match words.first().copied().unwrap_or("whole") {
        "long" => Effort { turnover: 10_000, ..WHOLE },
        "whole" => WHOLE,
        "quick" => QUICK,
        other => bail!("'{other}' is none of quick, whole and long"),
    };
    let parts = Parts(words.get(1..).unwrap_or_default());
    let lines =
        if is_worker { measure_as_worker(effort, parts)? } else { measure_all(effort, parts, words)? };
    println!("{}", serde_json::to_string_pretty(&lines)?);
    Ok(())
}

fn measure_all(effort: Effort, parts: Parts<'_>, words: &[&str]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for user in ["agentbox-plain", "agentbox-sub", "root"] {
        eprintln!("measuring as {user} …");
        let place = Place::make(user)?;
        lines.extend(worker(user, &place, words)?);
        // The memory and the descriptors of these processes only root sees.
        if parts.include("idle") {
            lines.push(idle::measure(user, &place, effort)?);
        }
        if parts.include("many") {
            lines.extend(many::measure(user, &place, effort)?);
        }
        if parts.include("turnover") && user == "root" {
            lines.push(turnover::measure(&place, effort)?);
        }
        // Only root makes a network to measure in.
        if parts.include("gateway") && user == "root" {
            lines.extend(gateway::measure(&place, effort)?);
        }
    }
    goal::print_table(&lines);
    Ok(lines)
}

/// What is measured: the named parts, or all.
#[derive(Clone, Copy)]
struct Parts<'words>(&'words [&'words str]);

impl Parts<'_> {
    fn include(self, part: &str) -> bool {
        self.0.is_empty() || self.0.contains(&part)
    }
}

fn measure_as_worker(effort: Effort, parts: Parts<'_>) -> Result<Vec<Line>> {
    let who = std::env::var("USER").unwrap_or_default();
    let mut lines = Vec::new();
    if parts.include("cycles") {
        lines.extend(cycles::measure(&who, effort)?);
    }
    if parts.include("exec") {
        lines.push(exec::measure(&who, effort)?);
        lines.push(clients::measure(&who, effort)?);
        lines.push(enter::measure(&who, effort)?);
    }
    if parts.include("copy") {
        lines.extend(copy::measure(&who, effort)?);
    }
    if parts.include("gateway") {
        lines.extend(gateway::measure_start(&who, effort)?);
    }
    if parts.include("review") {
        lines.extend(review::measure(&who, effort)?);
    }
    if parts.include("gvisor") {
        lines.extend(gvisor::measure(&who, effort)?);
    }
    if parts.include("images") {
        lines.extend(images::measure(&who, effort)?);
    }
    if parts.include("together") {
        lines.extend(together::measure(&who, effort)?);
    }
    if geteuid().is_root() {
        if parts.include("kernel") {
            lines.extend(kernel::cgroups(effort)?);
        }
        if parts.include("leaks") {
            lines.push(leaks::measure(effort)?);
        }
    } else if parts.include("throughput") {
        lines.push(throughput::measure(&who)?);
    }
    Ok(lines)
}

/// Measures as a user, in a process of that user's.
fn worker(user: &str, place: &Place, words: &[&str]) -> Result<Vec<Line>> {
    let program = directory()?.join("agentbox-bench").display().to_string();
    let mut command = place.caller().command(&program);
    let output = command.arg(WORKER).args(words).stderr(Stdio::inherit()).output().context("worker")?;
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
