//! What the kernel tells of limits that were reached. Nobody inside can make it say less; what it does not count, as
//! where there is no cgroup, is not told.

use std::time::{Duration, Instant};

use handover::Reached;
use jail::Cgroup;

/// For how long an end is put down to what the kernel killed for want of memory: whoever hears of it first asks first.
const MOMENT: Duration = Duration::from_secs(2);

/// What was counted up to the last question.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    kills: u64,
    refusals: u64,
    /// When something was last seen to have been killed.
    killed: Option<Instant>,
}

impl Counts {
    /// What was reached since the last question.
    pub(crate) fn reached(&mut self, cgroup: Option<&Cgroup>) -> Reached {
        let Some(cgroup) = cgroup else { return Reached::default() };
        let (kills, refusals) = (cgroup.out_of_memory_kills(), cgroup.refused_processes());
        let reached = Reached { memory: kills > self.kills, pids: refusals > self.refusals };
        let killed = if reached.memory { Some(Instant::now()) } else { self.killed };
        *self = Self { kills, refusals, killed };
        reached
    }

    /// Whether something was killed for want of memory just now.
    pub(crate) fn has_run_out(&mut self, cgroup: Option<&Cgroup>) -> bool {
        self.reached(cgroup).memory || self.killed.is_some_and(|killed| killed.elapsed() < MOMENT)
    }
}
