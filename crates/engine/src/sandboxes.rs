//! The caller's sandboxes: found, listed, ended, removed. Files are the truth: a sandbox runs as long as its
//! keeper holds the lock of its runtime directory, and exists as long as there is a directory of it.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use handover::{Filed, Reason, State, Status};
use policy::{Report, SandboxId, SandboxSpec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::EngineError;
use crate::kept::{self, Kept};
use crate::pause::Pause;
use crate::removal;
use crate::start::Engine;

/// What was told to end, and said that it would, takes no longer for it.
const ENDING: Duration = Duration::from_secs(30);

/// What dies with its keeper takes no longer for it.
const DYING: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A sandbox as its owner sees it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// What it was made as.
    pub spec: SandboxSpec,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// What it is now.
    pub phase: Phase,
    /// Whether anything of it outlives its processes.
    pub kept: bool,
}

/// What a sandbox is at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its walls go up.
    Starting,
    /// It runs.
    Running {
        /// Since when, in milliseconds since 1970; none for one of which nothing is kept.
        since_ms: Option<u64>,
        /// Each wall.
        report: Option<Report>,
        /// Whether everything inside stands still, and why.
        paused: Option<Pause>,
    },
    /// It has never run.
    Created,
    /// It has ended.
    Stopped {
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// Why.
        reason: Reason,
        /// What its command exited with, where it ended with that.
        code: Option<u8>,
        /// What is known beside that, for a person; its words may come from inside.
        why: Option<String>,
    },
}

/// An entry of a list: a sandbox, or one whose files cannot be understood.
#[derive(Debug)]
pub struct Entry {
    /// Whose.
    pub id: SandboxId,
    /// What is known.
    pub sandbox: Result<Sandbox, EngineError>,
}

impl Engine {
    pub(crate) fn kept(&self, id: &SandboxId) -> Kept {
        Kept::of(&self.directories.kept(), id)
    }

    pub(crate) fn runtime(&self, id: &SandboxId) -> PathBuf {
        self.directories.sandboxes().join(id.as_str())
    }

    /// Every sandbox of the caller's, by id.
    #[must_use]
    pub fn list(&self) -> Vec<Entry> {
        let entries = self.ids().into_iter().map(|id| Entry { sandbox: self.look_at(&id), id });
        // One of which nothing is kept has no files before its walls stand, nor when it ends.
        entries.filter(|entry| entry.sandbox.is_ok() || self.kept(&entry.id).exists()).collect()
    }

    /// What a sandbox was made as.
    pub fn spec(&self, id: &SandboxId) -> Result<SandboxSpec, EngineError> {
        Ok(self.filed(id)?.spec)
    }

    pub(crate) fn filed(&self, id: &SandboxId) -> Result<Filed, EngineError> {
        let kept = self.kept(id);
        if kept.exists() { kept.filed() } else { self.filed_for_now(id) }
    }

    fn filed_for_now(&self, id: &SandboxId) -> Result<Filed, EngineError> {
        kept::read_filed(&self.runtime(id), id)
            .map_err(|source| EngineError::Damaged { id: id.to_string(), source })
    }

    /// What is known of a sandbox.
    pub fn look_at(&self, id: &SandboxId) -> Result<Sandbox, EngineError> {
        let kept = Some(self.kept(id)).filter(Kept::exists);
        let (Filed { spec, created_ms, init, .. }, status) = match &kept {
            Some(kept) => (kept.filed()?, kept.status()?),
            None => (self.filed_for_now(id)?, None),
        };
        let phase = match (self.is_running(id), status.map(|status| status.state)) {
            (true, Some(State::Running { since_ms, report, .. })) => {
                Phase::Running { since_ms: Some(since_ms), report: Some(report), paused: self.paused(id) }
            }
            (true, None) if kept.is_none() && init.is_some() => {
                Phase::Running { since_ms: None, report: None, paused: self.paused(id) }
            }
            (true, _) => Phase::Starting,
            (false, Some(State::Stopped { at_ms, reason, code, why })) => {
                Phase::Stopped { at_ms, reason, code, why }
            }
            // Its keeper was killed before it could write.
            (false, Some(State::Running { since_ms, .. })) => {
                Phase::Stopped { at_ms: since_ms, reason: Reason::Killed, code: None, why: None }
            }
            (false, None) => Phase::Created,
        };
        Ok(Sandbox { spec, created_ms, phase, kept: kept.is_some() })
    }

    /// Whether its keeper lives.
    #[must_use]
    pub fn is_running(&self, id: &SandboxId) -> bool {
        let Ok(directory) = File::open(self.runtime(id)) else { return false };
        let free = flock(&directory, FlockOperation::NonBlockingLockShared);
        free == Err(rustix::io::Errno::WOULDBLOCK)
    }

    /// Whether its walls stand, or are about to: what has to be looked through before they are planned has been.
    #[must_use]
    pub fn is_planned(&self, id: &SandboxId) -> bool {
        let kept = self.kept(id);
        if kept.exists() {
            return kept
                .status()
                .is_ok_and(|status| matches!(status, Some(Status { state: State::Running { .. }, .. })));
        }
        self.filed_for_now(id).is_ok_and(|filed| filed.init.is_some())
    }

    /// A connection to have something new done inside, which one that stands still cannot.
    pub fn enter(&self, id: &SandboxId) -> Result<UnixStream, EngineError> {
        let connection = self.connect(id)?;
        if self.is_paused(id) { Err(EngineError::Paused(id.to_string())) } else { Ok(connection) }
    }

    /// Waits until a sandbox has ended and nothing of its processes is left.
    pub fn wait_for_end(&self, id: &SandboxId) {
        while let Ok(directory) = File::open(self.runtime(id)) {
            let free = flock(&directory, FlockOperation::LockShared);
            if free != Err(rustix::io::Errno::INTR) {
                return;
            }
        }
    }

    /// Waits until one that was told to end has, for as long as that may take.
    pub fn expect_end(&self, id: &SandboxId) -> Result<(), EngineError> {
        const LOOK: Duration = Duration::from_millis(2);
        let deadline = Instant::now() + ENDING;
        while self.is_running(id) {
            if Instant::now() > deadline {
                return Err(EngineError::Silent {
                    id: id.to_string(),
                    source: io::ErrorKind::TimedOut.into(),
                });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends a sandbox that does not answer: without its keeper nothing of it goes on.
    pub fn kill(&self, id: &SandboxId) -> Result<(), EngineError> {
        let Some(status) = self.kept(id).status()? else { return Ok(()) };
        let State::Running { keeper, init, supervisor, .. } = status.state else { return Ok(()) };
        let open = |pid| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
        let cgroups = keeper::cgroups(&self.runtime(id));
        let (keeper, others) = (open(keeper), [open(init), open(supervisor)]);
        // Looked at after they were opened: as long as its keeper lives, the numbers are theirs.
        if let Some(keeper) = keeper.filter(|_| self.is_running(id)) {
            pidfd_send_signal(&keeper, Signal::KILL)
                .map_err(|errno| EngineError::Silent { id: id.to_string(), source: errno.into() })?;
            self.wait_for_end(id);
            // What is frozen cannot die.
            jail::thaw_directories(&cgroups);
            for process in others.iter().flatten() {
                let mut descriptors = [PollFd::new(process, PollFlags::IN)];
                let _ = poll(&mut descriptors, Some(&DYING));
            }
        }
        Ok(())
    }

    /// Removes a sandbox that has ended, with all that was kept of it.
    pub fn remove(&self, id: &SandboxId) -> Result<(), EngineError> {
        if self.is_running(id) {
            return Err(EngineError::Running(id.to_string()));
        }
        removal::remove(&self.directories, id)
    }

    /// Whether there is such a sandbox: kept, or only running.
    pub(crate) fn is_there(&self, id: &SandboxId) -> bool {
        self.kept(id).exists() || self.is_running(id)
    }
}
