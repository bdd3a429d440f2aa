//! The processes inside sandboxes: as the host's /proc shows them ([`Snapshot`]), or where they are those of a kernel of
//! the sandbox's own, as that one tells. Whatever a process calls itself is hostile, and all that is told is.

mod ids;
mod snapshot;
mod stat;
mod told;

use std::time::Duration;

pub use snapshot::Snapshot;

/// A process inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id inside.
    pub pid: i32,
    /// Its parent's, inside; zero for init.
    pub parent: i32,
    /// The number of the exec that it comes from, as far as it can be known.
    pub exec: Option<u64>,
    /// Its user inside; none where that is not mapped.
    pub user: Option<u32>,
    /// What it does, by the kernel's letter.
    pub state: char,
    /// Its threads.
    pub threads: u64,
    /// Memory that it has in use, shared pages included, in bytes.
    pub memory: u64,
    /// Processor time that it has used, with that of children it has waited for.
    pub cpu: Duration,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Its command line, or the kernel's name for it where it has none.
    pub command: CommandLine,
}

/// A command line as the kernel has it. It is taken apart only to be shown: of nothing but word ends, it would be many
/// times as large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<u8>);

impl CommandLine {
    fn of(mut line: Vec<u8>, name: &[u8]) -> Self {
        if line.last() == Some(&0) {
            line.pop();
        }
        Self(if line.is_empty() { name.to_vec() } else { line })
    }

    /// Its words.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == 0)
    }
}

/// The processes that were asked for, with their numbers, the oldest first.
#[derive(Clone, Copy, Debug)]
struct Execs<'list>(&'list [(i32, u64)]);

impl Execs<'_> {
    /// The number of the exec that a process comes from: the one that it says, else the one of its id or its session.
    /// It may say anything: this is for a person's eyes alone.
    fn of(self, said: Option<u64>, pid: i32, session: i32) -> Option<u64> {
        let known = |pid: i32| self.0.iter().rev().find(|(of, _)| *of == pid).map(|(_, number)| *number);
        said.or_else(|| known(pid)).or_else(|| known(session))
    }
}

/// What so many ticks of the kernel's clock take.
fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1))
}

/// When a process was started, in milliseconds since 1970, by the ticks since its kernel was.
fn started_ms(booted_s: u64, started_ticks: u64) -> u64 {
    let since = u64::try_from(ticks(started_ticks).as_millis()).unwrap_or(u64::MAX);
    booted_s.saturating_mul(1000).saturating_add(since)
}
