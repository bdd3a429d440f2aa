//! The caller's sandboxes: made, found, listed, ended, removed. Files are the truth: a sandbox runs as long as its
//! keeper holds the lock of its runtime directory, and exists as long as there is a directory of it.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use handover::{Filed, Reason, State, Stay};
use policy::{Report, SandboxId, SandboxSpec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::EngineError;
use crate::kept::{self, Kept};
use crate::ports;
use crate::reconcile;
use crate::spawn::WaitingKeeper;
use crate::start::{Engine, Starting};

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
    fn kept(&self, id: &SandboxId) -> Kept {
        Kept::of(&self.directories.kept(), id)
    }

    pub(crate) fn runtime(&self, id: &SandboxId) -> PathBuf {
        self.directories.sandboxes().join(id.as_str())
    }

    /// Makes a sandbox whose workspace and outputs outlive its processes, and starts it.
    pub fn create(
        &self,
        keeper: WaitingKeeper,
        spec: SandboxSpec,
        stay: Stay,
    ) -> Result<Starting, EngineError> {
        self.directories.make_state()?;
        let kept = self.kept(&spec.id);
        {
            let _lock = kept::lock(&self.directories.kept())?;
            if let Some(name) = &spec.name {
                self.check_name(name.as_str())?;
            }
            kept.make(&Filed::new(spec.clone()))?;
        }
        self.order(keeper, spec, stay, Some(kept.directory().to_owned())).inspect_err(|_| drop(kept.remove()))
    }

    /// Starts a sandbox that has ended: its workspace and outputs are as they were left.
    pub fn boot(&self, keeper: WaitingKeeper, id: &SandboxId) -> Result<Starting, EngineError> {
        let kept = self.kept(id);
        if self.is_running(id) {
            return Err(EngineError::Running(id.to_string()));
        }
        let spec = kept.filed()?.spec;
        // What a later version has written is not written over.
        kept.status()?;
        ports::wait_for(&spec.ports);
        self.order(keeper, spec, Stay::UntilEnded, Some(kept.directory().to_owned()))
    }

    fn check_name(&self, name: &str) -> Result<(), EngineError> {
        let taken = self.list().into_iter().find(|entry| {
            entry
                .sandbox
                .as_ref()
                .is_ok_and(|sandbox| sandbox.spec.name.as_ref().is_some_and(|other| other.as_str() == name))
        });
        match taken {
            Some(entry) => Err(EngineError::NameTaken { name: name.to_owned(), id: entry.id.to_string() }),
            None => Ok(()),
        }
    }

    /// Every sandbox of the caller's, by id.
    #[must_use]
    pub fn list(&self) -> Vec<Entry> {
        let entries = self.ids().into_iter().map(|id| Entry { sandbox: self.look_at(&id), id });
        // One of which nothing is kept has no files before its walls stand, nor when it ends.
        entries.filter(|entry| entry.sandbox.is_ok() || self.kept(&entry.id).exists()).collect()
    }

    /// The ids of all that there are: kept, or only running.
    fn ids(&self) -> Vec<SandboxId> {
        let mut ids = kept::ids(&self.directories.kept());
        ids.extend(kept::ids(&self.directories.sandboxes()).into_iter().filter(|id| self.is_running(id)));
        ids.sort();
        ids.dedup();
        ids
    }

    /// Whom a person means: by id, by name, or by the beginning of an id.
    pub fn find(&self, text: &str) -> Result<SandboxId, EngineError> {
        let ids = self.ids();
        if let Some(id) = ids.iter().find(|id| id.as_str() == text) {
            return Ok(id.clone());
        }
        let named = |id: &&SandboxId| {
            let filed = self.filed(id).ok();
            filed.is_some_and(|filed| filed.spec.name.is_some_and(|name| name.as_str() == text))
        };
        if let Some(id) = ids.iter().find(named) {
            return Ok(id.clone());
        }
        let fitting: Vec<&SandboxId> =
            ids.iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text)).collect();
        match fitting.as_slice() {
            [id] => Ok((*id).clone()),
            [] => Err(EngineError::Unknown(text.escape_debug().to_string())),
            several => Err(EngineError::Ambiguous {
                text: text.to_owned(),
                ids: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn filed(&self, id: &SandboxId) -> Result<Filed, EngineError> {
        let kept = self.kept(id);
        if kept.exists() {
            return kept.filed();
        }
        kept::read_filed(&self.runtime(id), id)
            .map_err(|source| EngineError::Damaged { id: id.to_string(), source })
    }

    /// What is known of a sandbox.
    pub fn look_at(&self, id: &SandboxId) -> Result<Sandbox, EngineError> {
        let kept = self.kept(id);
        let Filed { spec, created_ms, .. } = self.filed(id)?;
        let status = if kept.exists() { kept.status()? } else { None };
        let phase = match (self.is_running(id), status.map(|status| status.state)) {
            (true, Some(State::Running { since_ms, report, .. })) => {
                Phase::Running { since_ms: Some(since_ms), report: Some(report) }
            }
            (true, None) if !kept.exists() => Phase::Running { since_ms: None, report: None },
            (true, _) => Phase::Starting,
            (false, Some(State::Stopped { at_ms, reason, code })) => Phase::Stopped { at_ms, reason, code },
            // Its keeper was killed before it could write.
            (false, Some(State::Running { since_ms, .. })) => {
                Phase::Stopped { at_ms: since_ms, reason: Reason::Killed, code: None }
            }
            (false, None) => Phase::Created,
        };
        Ok(Sandbox { spec, created_ms, phase, kept: kept.exists() })
    }

    /// Whether its keeper lives.
    #[must_use]
    pub fn is_running(&self, id: &SandboxId) -> bool {
        let Ok(directory) = File::open(self.runtime(id)) else { return false };
        let free = flock(&directory, FlockOperation::NonBlockingLockShared);
        free == Err(rustix::io::Errno::WOULDBLOCK)
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

    /// Ends a sandbox that does not answer: without its keeper nothing of it goes on.
    pub fn kill(&self, id: &SandboxId) -> Result<(), EngineError> {
        let Some(status) = self.kept(id).status()? else { return Ok(()) };
        let State::Running { keeper, init, supervisor, .. } = status.state else { return Ok(()) };
        let open = |pid| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
        let (keeper, others) = (open(keeper), [open(init), open(supervisor)]);
        // Looked at after they were opened: as long as its keeper lives, the numbers are theirs.
        if let Some(keeper) = keeper.filter(|_| self.is_running(id)) {
            pidfd_send_signal(&keeper, Signal::KILL)
                .map_err(|errno| EngineError::Silent { id: id.to_string(), source: errno.into() })?;
            self.wait_for_end(id);
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
        drop(reconcile::reconcile(&self.directories.sandboxes()));
        self.kept(id).remove()?;
        // What is on record stays, and says so as well as it goes.
        let log = self.directories.audit();
        if let Ok(head) = audit::Head::read(&log, id)
            && head.seq > 0
            && let Ok(descriptor) = audit::open(&log, id)
            && let Ok(mut writer) = audit::Writer::new(descriptor, head)
        {
            let _ = writer.append(SystemTime::now(), &audit::Event::Removed);
        }
        Ok(())
    }

    /// Whose record is meant: also that of a sandbox that is gone.
    pub fn find_record(&self, text: &str) -> Result<SandboxId, EngineError> {
        let gone =
            |id: &SandboxId| audit::Head::read(&self.directories.audit(), id).is_ok_and(|head| head.seq > 0);
        match (self.find(text), text.parse::<SandboxId>()) {
            (Err(EngineError::Unknown(_)), Ok(id)) if gone(&id) => Ok(id),
            (found, _) => found,
        }
    }

    /// Removes what is older than `age` on record of sandboxes that are gone: whose.
    pub fn expire_records(&self, age: Duration) -> Result<Vec<SandboxId>, EngineError> {
        let directory = self.directories.audit();
        let older = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let lives = |id: &str| {
            // What is no id of ours is nobody's to remove.
            id.parse().is_ok_and(|id| self.kept(&id).exists() || self.is_running(&id))
        };
        audit::expire(&directory, older, lives)
            .map_err(|error| EngineError::State { path: directory, source: std::io::Error::other(error) })
    }
}
