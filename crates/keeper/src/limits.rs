//! What the kernel tells of limits that were reached. Nobody inside can make it say less; what it does not count, as
//! where there is no cgroup, is not told.

use handover::Reached;
use jail::Cgroup;

/// What was counted up to the last question.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    kills: u64,
    refusals: u64,
}

impl Counts {
    /// What was reached since the last question.
    pub(crate) fn reached(&mut self, cgroup: Option<&Cgroup>) -> Reached {
        let Some(cgroup) = cgroup else { return Reached::default() };
        let now = Self { kills: cgroup.out_of_memory_kills(), refusals: cgroup.refused_processes() };
        let reached = Reached { memory: now.kills > self.kills, pids: now.refusals > self.refusals };
        *self = now;
        reached
    }
}
