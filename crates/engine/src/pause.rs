//! Standing still and going on, and other limits, of a sandbox that runs. What cgroups do, the owner's own process does
//! to them: the keeper has left a note of where they are.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use handover::Filed;
use jail::{Controller, LivingCgroup};
use keeper::PAUSED_FILE;
use policy::{Limits, Report, SandboxId};
use rustix::fs::{FlockOperation, flock};
use wire::{Ask, ExecEvent, NewLimits};

use crate::error::EngineError;
use crate::kept;
use crate::sandboxes::Sandbox;
use crate::start::Engine;

/// Why a sandbox stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The owner asked for it.
    Asked,
    /// More is on the disk than it may have there.
    DiskFull,
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The kernel could not get usage below the new limit.
const EBUSY: i32 = 16;

impl Engine {
    fn paused_file(&self, id: &SandboxId) -> PathBuf {
        self.runtime(id).join(PAUSED_FILE)
    }

    /// Whether everything inside a sandbox that runs stands still.
    #[must_use]
    pub fn is_paused(&self, id: &SandboxId) -> bool {
        self.paused_file(id).exists()
    }

    /// Why everything inside stands still, if it does.
    #[must_use]
    pub fn paused(&self, id: &SandboxId) -> Option<Pause> {
        let why = fs::read_to_string(self.paused_file(id)).ok()?;
        Some(if why == keeper::DISK_FULL { Pause::DiskFull } else { Pause::Asked })
    }

    pub(crate) fn cgroup(&self, id: &SandboxId) -> Option<LivingCgroup> {
        LivingCgroup::of(&keeper::cgroups(&self.runtime(id)))
    }

    /// The cgroup by which everything inside stands still, where there is one. A kernel of the sandbox's own does not survive
    /// being frozen in the middle of what it does: what it runs is stopped by it.
    fn freezer(&self, id: &SandboxId) -> Option<LivingCgroup> {
        let own_kernel = self.spec(id).is_ok_and(|spec| spec.backend.has_own_kernel());
        self.cgroup(id).filter(|cgroup| !own_kernel && cgroup.can_freeze())
    }

    /// Stops everything inside where it stands. Nothing happens to one that stands still.
    pub async fn pause(&self, id: &SandboxId) -> Result<(), EngineError> {
        if !self.is_running(id) {
            return Err(EngineError::NotRunning(id.to_string()));
        }
        let _turn = self.take_turn(id)?;
        let freezer = self.freezer(id);
        let path = self.paused_file(id);
        fs::write(&path, "").map_err(|source| EngineError::File { path, source })?;
        let mut done =
            self.tell(id, Ask::Pause(wire::Pause { paused: true, by_signal: freezer.is_none() })).await;
        if let (Ok(()), Some(freezer)) = (&done, freezer) {
            done = freezer.freeze().map_err(|source| EngineError::Pause { id: id.to_string(), source });
        }
        if done.is_err() {
            let _ = self.go_on(id).await;
        }
        done
    }

    /// Lets everything inside go on. Nothing happens to one that does.
    pub async fn resume(&self, id: &SandboxId) -> Result<(), EngineError> {
        if !self.is_running(id) {
            return Err(EngineError::NotRunning(id.to_string()));
        }
        let _turn = self.take_turn(id)?;
        self.go_on(id).await
    }

    async fn go_on(&self, id: &SandboxId) -> Result<(), EngineError> {
        let (path, freezer) = (self.paused_file(id), self.freezer(id));
        let why = fs::read(&path).ok();
        // First of all: its keeper may pause it again at any moment, and then says so there.
        let _ = fs::remove_file(&path);
        // Thawed in any case: whoever was killed in between may have frozen it and said nothing.
        let thawed = freezer.as_ref().map_or(Ok(()), LivingCgroup::thaw);
        let mut done = thawed.map_err(|source| EngineError::Pause { id: id.to_string(), source });
        if done.is_ok() && why.is_some() {
            done =
                self.tell(id, Ask::Pause(wire::Pause { paused: false, by_signal: freezer.is_none() })).await;
        }
        if let (Err(_), Some(why)) = (&done, why) {
            let _ = fs::write(path, why);
        }
        done
    }

    /// One pauses or resumes at a time.
    fn take_turn(&self, id: &SandboxId) -> Result<File, EngineError> {
        let path = self.runtime(id).join("pausing");
        let locked = File::create(&path).and_then(|file| {
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        });
        locked.map_err(|source| EngineError::File { path, source })
    }

    /// Gives a sandbox other limits: one that runs at once, one that is kept also when it starts again.
    pub async fn update(&self, id: &SandboxId, limits: Limits) -> Result<(), EngineError> {
        let _lock = kept::lock(&self.directories.kept())?;
        let mut filed = self.filed(id)?;
        let old = std::mem::replace(&mut filed.spec.limits, limits);
        if self.is_running(id) {
            let changed = changed(&old, &limits);
            let cgroup = self.cgroup(id);
            for controller in &changed {
                if !cgroup.as_ref().is_some_and(|cgroup| cgroup.limits(*controller)) {
                    return Err(EngineError::Unlimited { id: id.to_string(), what: controller.name() });
                }
            }
            let backend = filed.spec.backend;
            // What its own kernel counts was told to it at its start.
            if limits.disk != old.disk || (limits.pids != old.pids && backend.has_own_kernel()) {
                let what = if limits.disk == old.disk { Controller::Pids.name() } else { "disk" };
                return Err(EngineError::Unlimited { id: id.to_string(), what });
            }
            let (outer, outer_old) = (jail::host_limits(backend, &limits), jail::host_limits(backend, &old));
            self.tell(id, Ask::Limit(described(&limits))).await?;
            let set = cgroup.as_ref().map_or(Ok(()), |cgroup| {
                changed.iter().try_for_each(|controller| self.set(id, cgroup, *controller, &outer))
            });
            if let (Err(error), Some(cgroup)) = (set, cgroup) {
                // All or none: what was set already is as it was before, and on record.
                drop(Controller::ALL.map(|controller| cgroup.set(controller, &outer_old)));
                let _ = self.tell(id, Ask::Limit(described(&old))).await;
                return Err(error);
            }
        }
        self.refile(id, &filed)
    }

    /// Puts on file what a sandbox shall be from now on, where that is: in the state, or while it runs.
    pub(crate) fn refile(&self, id: &SandboxId, filed: &Filed) -> Result<(), EngineError> {
        let kept = self.kept(id);
        let directory = if kept.exists() { kept.directory().to_owned() } else { self.runtime(id) };
        filed.write(&directory).map_err(|source| EngineError::State { path: directory, source })
    }

    /// The report of a sandbox that runs, with the limits that it has by now.
    #[must_use]
    pub fn with_limits(&self, sandbox: &Sandbox, mut report: Report) -> Report {
        if let Some(cgroup) = self.cgroup(&sandbox.spec.id) {
            let mut limits = Report::default();
            let (backend, inner) = (sandbox.spec.backend, &sandbox.spec.limits);
            let outer = jail::host_limits(backend, inner);
            cgroup.report(&outer, &mut limits);
            jail::report_pids(&mut limits, backend, inner, &outer);
            report.replace(limits);
        }
        report
    }

    /// Sets one limit. One below what is in use would kill what uses it.
    fn set(
        &self,
        id: &SandboxId,
        cgroup: &LivingCgroup,
        controller: Controller,
        limits: &Limits,
    ) -> Result<(), EngineError> {
        let in_use = |used: u64| EngineError::InUse { id: id.to_string(), used };
        let used = cgroup.usage().memory.unwrap_or(0);
        if controller == Controller::Memory && used > limits.memory.as_bytes() {
            return Err(in_use(used));
        }
        cgroup.set(controller, limits).map_err(|source| match source.raw_os_error() {
            Some(EBUSY) => in_use(used),
            _ => EngineError::Limit { id: id.to_string(), source },
        })
    }

    /// Asks for something that is answered by being done, or with the error number of why not.
    pub(crate) async fn tell(&self, id: &SandboxId, ask: Ask) -> Result<(), EngineError> {
        let silent = |source| EngineError::Silent { id: id.to_string(), source };
        let mut asked = self.ask(id, ask).await?;
        let answer = asked.channel.messages.receiver.next_message::<ExecEvent>();
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let answer = answer.map_err(|_| silent(io::ErrorKind::TimedOut.into()))?;
        match answer.map_err(io::Error::other).map_err(silent)?.and_then(|answer| answer.event) {
            Some(wire::Event::Failed(failed)) => Err(EngineError::Refused {
                id: id.to_string(),
                source: io::Error::from_raw_os_error(failed.errno),
            }),
            _ => Ok(()),
        }
    }
}

/// Which limits of cgroups differ.
fn changed(old: &Limits, new: &Limits) -> Vec<Controller> {
    let differs = |controller: &Controller| match controller {
        Controller::Memory => old.memory != new.memory,
        Controller::Cpu => old.cpus != new.cpus,
        Controller::Pids => old.pids != new.pids,
    };
    Controller::ALL.into_iter().filter(differs).collect()
}

fn described(limits: &Limits) -> NewLimits {
    NewLimits {
        memory: limits.memory.as_bytes(),
        cpus_milli: limits.cpus.milli(),
        pids: limits.pids.count(),
        disk: limits.disk.as_bytes(),
    }
}
