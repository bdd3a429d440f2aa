//! What sandboxes use at a moment: as their cgroups count it, else as the sum over their processes.

use std::time::Duration;

use policy::{Backend, SandboxId};

use crate::error::EngineError;
use crate::processes::{Process, Snapshot};
use crate::start::Engine;
use handover::State;

/// What a sandbox uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory in bytes.
    pub memory: u64,
    /// Processor time since it was started.
    pub cpu: Duration,
    /// Processes and threads.
    pub pids: u64,
}

impl Engine {
    /// Init's process id on the host, of a sandbox that runs.
    pub(crate) fn init(&self, id: &SandboxId) -> Result<i32, EngineError> {
        let kept = self.kept(id);
        let init = if kept.exists() {
            match kept.status()?.map(|status| status.state) {
                Some(State::Running { init, .. }) => Some(init),
                _ => None,
            }
        } else {
            self.filed(id)?.init
        };
        // Looked at last: as long as its keeper lives, the number is init's.
        init.filter(|_| self.is_running(id)).ok_or_else(|| EngineError::NotRunning(id.to_string()))
    }

    /// What a sandbox that runs uses.
    pub fn usage(&self, id: &SandboxId, snapshot: &Snapshot) -> Result<Usage, EngineError> {
        let sum = snapshot.sum(self.init(id)?);
        let counted = self.cgroup(id).map(|cgroup| cgroup.usage()).unwrap_or_default();
        Ok(Usage {
            memory: counted.memory.unwrap_or(sum.memory),
            cpu: counted.cpu.unwrap_or(sum.cpu),
            pids: counted.pids.unwrap_or(sum.pids),
        })
    }

    /// The processes in a sandbox that runs, init aside. `execs` are the ids of processes that were asked for, with
    /// their numbers.
    pub async fn processes(&self, id: &SandboxId, execs: &[(i32, u64)]) -> Result<Vec<Process>, EngineError> {
        let init = self.init(id)?;
        let backend = self.spec(id)?.backend;
        if backend.has_own_kernel() {
            return self.told_processes(id, execs).await;
        }
        let snapshot = Snapshot::take();
        let init = match backend {
            Backend::Native => Some(init),
            Backend::Crun | Backend::Runc | Backend::Gvisor => snapshot.init_below(init),
        };
        Ok(init.map(|init| snapshot.processes(init, execs)).unwrap_or_default())
    }
}
