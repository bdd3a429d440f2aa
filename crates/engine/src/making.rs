//! Makes a sandbox of which something outlives its processes, and starts one that has ended. Each is whole or not there,
//! and of two commands that start the same one, one does. A name is had by one, also by one that ends with its command.

use failpoint::Point;
use handover::{Filed, Stay};
use policy::{SandboxId, SandboxSpec, Workspace};

use crate::error::EngineError;
use crate::kept::{self, Kept, Unclaimed};
use crate::ports;
use crate::removal;
use crate::runtime::Runtime;
use crate::sandboxes::Entry;
use crate::spawn::WaitingKeeper;
use crate::start::{Engine, Starting, Wanted};

impl Engine {
    /// Makes a sandbox whose workspace and outputs outlive its processes, and starts it. It stays once it is claimed.
    pub fn create(
        &self,
        keeper: WaitingKeeper,
        mut spec: SandboxSpec,
        stay: Stay,
    ) -> Result<(Starting, Unclaimed), EngineError> {
        // First of all: a port that is taken, or a directory that is no workspace, is known before anything is made.
        let listeners = ports::listen_for(&spec.ports)?;
        let program = self.program(spec.backend)?;
        let owner = self.look_at_workspace(&mut spec)?;
        let is_reviewed = matches!(spec.workspace, Workspace::Review(_));
        self.directories.make_state()?;
        let (id, kept) = (spec.id.clone(), self.kept(&spec.id));
        let unclaimed = self.enlist(&kept, &spec)?;
        let started = self.prepare(&kept, &spec, owner.as_ref()).and_then(|outliving| {
            failpoint::pass(Point::EngineWorkspacePrepared);
            let runtime = self.take(&id)?;
            self.order(keeper, runtime, listeners, Wanted { spec, stay, program }, Some(outliving))
        });
        match started {
            Ok(starting) => {
                if is_reviewed {
                    self.record_base_beside(&kept);
                }
                Ok((starting, unclaimed))
            }
            Err(error) => {
                drop(unclaimed);
                let _ = removal::remove_abandoned(&self.directories, &id);
                Err(error)
            }
        }
    }

    fn enlist(&self, kept: &Kept, spec: &SandboxSpec) -> Result<Unclaimed, EngineError> {
        if let Some(name) = &spec.name {
            self.free(name.as_str());
        }
        let _lock = kept::lock(&self.directories.kept())?;
        if let Some(name) = &spec.name {
            self.check_name(name.as_str())?;
        }
        kept.make(&Filed::new(spec.clone()))
    }

    /// The lock of a sandbox of which nothing outlives its processes. One with a name has it on file before anybody else
    /// can ask whose it is.
    pub(crate) fn take_for_now(&self, spec: &SandboxSpec) -> Result<Runtime, EngineError> {
        let Some(name) = &spec.name else { return self.take(&spec.id) };
        self.free(name.as_str());
        let _lock = kept::lock(&self.directories.kept())?;
        self.check_name(name.as_str())?;
        let runtime = self.take(&spec.id)?;
        match Filed::new(spec.clone()).write_for_now(&runtime.directory) {
            Ok(()) => Ok(runtime),
            Err(source) => {
                let path = runtime.directory.clone();
                runtime.discard();
                Err(EngineError::File { path, source })
            }
        }
    }

    /// Removes a new sandbox that did not start and of which nobody was told, once its keeper has ended.
    pub fn forget_unstarted(&self, id: &SandboxId) {
        if self.kept(id).is_unclaimed() && self.expect_end(id).is_ok() {
            let _ = removal::remove_abandoned(&self.directories, id);
        }
    }

    /// Starts a sandbox that has ended: its workspace and outputs are as they were left.
    pub fn boot(&self, keeper: WaitingKeeper, id: &SandboxId) -> Result<Starting, EngineError> {
        let kept = self.kept(id);
        if self.is_running(id) {
            return Err(EngineError::Running(id.to_string()));
        }
        let runtime = self.take(id)?;
        failpoint::pass(Point::EngineBooting);
        // Read only now: nobody else starts or removes it any more. What a later version has written is not written
        // over.
        let spec = match kept.filed().and_then(|filed| kept.status().map(|_| filed.spec)) {
            Ok(spec) if !kept.is_unclaimed() => spec,
            unusable => {
                runtime.discard();
                let is_gone = !kept.exists() || kept.is_unclaimed();
                let gone = EngineError::Unknown(id.to_string());
                return Err(if is_gone { gone } else { unusable.err().unwrap_or(gone) });
            }
        };
        let program = match self.program(spec.backend) {
            Ok(program) => program,
            Err(error) => {
                runtime.discard();
                return Err(error);
            }
        };
        kept.forget_processes()?;
        ports::wait_for(&spec.ports);
        let listeners = match ports::listen_for(&spec.ports) {
            Ok(listeners) => listeners,
            Err(error) => {
                runtime.discard();
                return Err(error);
            }
        };
        let outliving = match self.prepared(&kept, &spec) {
            Ok(outliving) => outliving,
            Err(error) => {
                runtime.discard();
                return Err(error);
            }
        };
        let wanted = Wanted { spec, stay: Stay::UntilEnded, program };
        self.order(keeper, runtime, listeners, wanted, Some(outliving))
    }

    /// Takes a name from a sandbox of which nobody was told.
    fn free(&self, name: &str) {
        let taken = self.named(name).filter(|entry| self.kept(&entry.id).is_abandoned());
        if let Some(Entry { id, .. }) = taken {
            // Its keeper has noticed, and is about to end.
            self.wait_for_end(&id);
            let _ = removal::remove_abandoned(&self.directories, &id);
        }
    }

    fn named(&self, name: &str) -> Option<Entry> {
        self.list().into_iter().find(|entry| {
            entry
                .sandbox
                .as_ref()
                .is_ok_and(|sandbox| sandbox.spec.name.as_ref().is_some_and(|other| other.as_str() == name))
        })
    }

    fn check_name(&self, name: &str) -> Result<(), EngineError> {
        match self.named(name) {
            Some(entry) => Err(EngineError::NameTaken { name: name.to_owned(), id: entry.id.to_string() }),
            None => Ok(()),
        }
    }
}
