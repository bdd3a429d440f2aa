//! The processes of this machine at one moment, and those among them that are a sandbox's: init and whatever descends
//! from it. Nothing inside is asked, so that one which stands still, or is full, can be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::ids::IdMap;
use super::stat::{Stat, Status};
use super::{CommandLine, Execs, Process, started_ms, ticks};

/// What is read of one file of a process at most.
const MOST: u64 = 64 << 10;

/// Every process of the machine at one moment.
#[derive(Debug)]
pub struct Snapshot {
    stats: BTreeMap<i32, Stat>,
    children: BTreeMap<i32, Vec<i32>>,
}

/// What a sandbox uses, summed over its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Memory in bytes; what processes share counts for each.
    pub memory: u64,
    /// Processor time.
    pub cpu: Duration,
    /// Processes and threads.
    pub pids: u64,
}

impl Snapshot {
    /// Looks at all processes.
    #[must_use]
    pub fn take() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let stats: BTreeMap<i32, Stat> = pids
            .filter_map(|pid| {
                Some((pid, Stat::parse(&read(&Path::new("/proc").join(pid.to_string()).join("stat"))?)?))
            })
            .collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, stat) in &stats {
            children.entry(stat.parent).or_default().push(*pid);
        }
        Self { stats, children }
    }

    /// Whoever descends from `init`, which comes first: orphans inside become its children.
    fn descendants(&self, init: i32) -> Vec<i32> {
        let mut found: Vec<i32> = self.stats.contains_key(&init).then_some(init).into_iter().collect();
        let mut next = 0;
        // What is not looked at in one moment could say that two are each other's parents.
        let mut seen: BTreeSet<i32> = found.iter().copied().collect();
        while let Some(pid) = found.get(next) {
            let children = self.children.get(pid).into_iter().flatten().copied();
            let new: Vec<i32> = children.filter(|child| seen.insert(*child)).collect();
            found.extend(new);
            next += 1;
        }
        found
    }

    /// Init, where the first process of a sandbox is a runtime that started it: the first of a namespace within that
    /// process's own.
    #[must_use]
    pub(crate) fn init_below(&self, first: i32) -> Option<i32> {
        let levels = |pid: i32| -> Option<Vec<i32>> {
            let text = read(&Path::new("/proc").join(pid.to_string()).join("status"))?;
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            Some(line.split_whitespace().filter_map(|number| number.parse().ok()).collect())
        };
        let depth = levels(first)?.len() + 1;
        let is_init =
            |pid: &i32| levels(*pid).is_some_and(|levels| levels.len() == depth && levels.last() == Some(&1));
        self.descendants(first).into_iter().find(is_init)
    }

    /// What the processes below `init` use together.
    #[must_use]
    pub fn sum(&self, init: i32) -> Sum {
        let stats = self.descendants(init).into_iter().filter_map(|pid| self.stats.get(&pid));
        stats.fold(Sum::default(), |sum, stat| Sum {
            memory: sum.memory.saturating_add(stat.memory()),
            cpu: sum.cpu + ticks(stat.cpu_ticks),
            pids: sum.pids + stat.threads,
        })
    }

    /// The processes below `init`, without it, by their ids inside. `execs` are the ids of processes that were asked
    /// for, with their numbers, the oldest first.
    #[must_use]
    pub fn processes(&self, init: i32, execs: &[(i32, u64)]) -> Vec<Process> {
        let map = read(&Path::new("/proc").join(init.to_string()).join("uid_map")).unwrap_or_default();
        let users = IdMap::parse(&String::from_utf8_lossy(&map));
        let booted = booted();
        let mut processes: Vec<Process> = self
            .descendants(init)
            .into_iter()
            .skip(1)
            .filter_map(|pid| self.process(pid, &users, booted, execs))
            .collect();
        processes.sort_by_key(|process| process.pid);
        processes
    }

    /// None where it has ended meanwhile.
    fn process(&self, pid: i32, users: &IdMap, booted: u64, execs: &[(i32, u64)]) -> Option<Process> {
        let stat = self.stats.get(&pid)?;
        let directory = Path::new("/proc").join(pid.to_string());
        let status = Status::parse(&String::from_utf8_lossy(&read(&directory.join("status"))?))?;
        let parent = Path::new("/proc").join(stat.parent.to_string()).join("status");
        let parent = read(&parent).and_then(|text| Status::parse(&String::from_utf8_lossy(&text)));
        let exec = Execs(execs).of(mark(&directory), status.pid, status.session);
        let line = read(&directory.join("cmdline")).unwrap_or_default();
        Some(Process {
            pid: status.pid,
            parent: parent.map_or(0, |parent| parent.pid),
            exec,
            user: users.inside(status.user),
            state: stat.state,
            threads: stat.threads,
            memory: stat.memory(),
            cpu: ticks(stat.cpu_ticks),
            started_ms: started_ms(booted, stat.started_ticks),
            command: CommandLine::of(line, &stat.name),
        })
    }
}

/// The exec that a process says it comes from.
fn mark(directory: &Path) -> Option<u64> {
    wire::exec_mark(&read(&directory.join("environ"))?)
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// When the machine was started, in seconds since 1970.
fn booted() -> u64 {
    let text = read(Path::new("/proc/stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<u64>().ok());
    seconds.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_see_ourselves_below_our_parent() {
        let snapshot = Snapshot::take();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(snapshot.descendants(own).contains(&own));
        assert!(snapshot.sum(own).memory > 0);
        assert!(snapshot.descendants(-5).is_empty());
    }
}
