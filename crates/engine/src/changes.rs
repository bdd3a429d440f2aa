//! What waits in a reviewed workspace of a sandbox, and what the owner does with it. While changes are taken, everything
//! inside stands still.

use policy::{SandboxId, SandboxName, Workspace};
use workspace::{
    Both, Branched, Brought, Change, Commits, Files, Mode, Order, Review, ReviewError, Selection,
};

use crate::error::EngineError;
use crate::start::Engine;

/// Where changes are taken to.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A new branch of the owner's repository; without a name, one after the sandbox.
    Branch(Option<String>),
    /// The owner's working tree.
    Worktree(Both),
}

/// What became of changes that were taken.
#[derive(Clone, Debug)]
pub enum Applied {
    /// They are a branch.
    Branch(Branched),
    /// They are in the working tree.
    Worktree(Brought),
}

impl Engine {
    /// The files of a sandbox's reviewed workspace.
    fn changes(&self, id: &SandboxId) -> Result<Files, EngineError> {
        let files = Files::of(self.kept(id).directory());
        if files.recorded().exists() { Ok(files) } else { Err(ReviewError::NoWorkspace.into()) }
    }

    /// Whether it has a workspace that is reviewed.
    #[must_use]
    pub fn is_reviewed(&self, id: &SandboxId) -> bool {
        self.changes(id).is_ok()
    }

    /// Whether it works on the owner's directory itself.
    #[must_use]
    pub fn is_direct(&self, id: &SandboxId) -> bool {
        self.changes(id).is_ok_and(|files| workspace::mode(&files).is_ok_and(|mode| mode == Mode::Direct))
    }

    /// Whether something seems to wait for the owner: exactly of one that does not run, once after each of its starts. While
    /// it runs it is told cheaply, so that what git ignores counts, too, and what has been taken.
    #[must_use]
    pub fn seems_to_wait(&self, id: &SandboxId) -> bool {
        let Ok(files) = self.changes(id) else { return false };
        let exactly =
            if self.is_direct(id) || self.is_running(id) { None } else { Some(workspace::waits(&files)) };
        match exactly {
            Some(Ok(Some(waits))) => waits,
            // What cannot be told waits.
            Some(Err(_)) => true,
            None | Some(Ok(None)) => workspace::has_changes(&files).unwrap_or(true),
        }
    }

    /// Refuses where something waits that the owner has not taken.
    pub fn check_nothing_waits(&self, id: &SandboxId) -> Result<(), EngineError> {
        let Ok(files) = self.changes(id) else { return Ok(()) };
        // What cannot be told is not thrown away either.
        match workspace::is_waiting(&files) {
            Ok(false) => Ok(()),
            Ok(true) => Err(EngineError::Waiting(id.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything that was changed, at some paths or anywhere. The agent's commits are fetched first; where they cannot
    /// be, what they made of the files is shown, and why.
    pub fn review(
        &self,
        id: &SandboxId,
        paths: &[Vec<u8>],
    ) -> Result<(Review, Option<EngineError>), EngineError> {
        let files = self.changes(id)?;
        let unfetched = self.fetch_commits(id, &files).err();
        Ok((workspace::review(&files, paths)?, unfetched))
    }

    /// The changes as they can be chosen from, and the tree that they are.
    pub fn choices(&self, id: &SandboxId, paths: &[Vec<u8>]) -> Result<(String, Vec<Change>), EngineError> {
        Ok(workspace::choices(&self.changes(id)?, paths)?)
    }

    /// Takes changes, while everything inside stands still.
    pub async fn apply(
        &self,
        id: &SandboxId,
        order: &Order,
        destination: &Destination,
    ) -> Result<Applied, EngineError> {
        let files = self.changes(id)?;
        let name = self.filed(id)?.spec.name;
        let must_freeze = self.is_running(id) && !self.is_paused(id);
        if must_freeze {
            self.pause(id).await?;
        }
        let applied = self.take_changes(id, &files, name.as_ref(), order, destination);
        if must_freeze {
            self.resume(id).await?;
        }
        applied
    }

    fn take_changes(
        &self,
        id: &SandboxId,
        files: &Files,
        name: Option<&SandboxName>,
        order: &Order,
        destination: &Destination,
    ) -> Result<Applied, EngineError> {
        match destination {
            Destination::Branch(branch) => {
                let is_direct = workspace::mode(files)? == Mode::Direct;
                let is_whole = matches!(order.selection, Selection::All) && order.commits == Commits::Kept;
                if is_direct && !is_whole {
                    return Err(ReviewError::Direct.into());
                }
                if order.commits == Commits::Kept {
                    self.fetch_commits(id, files)?;
                }
                let usual = || format!("agentbox/{}", name.map_or_else(|| id.as_str(), SandboxName::as_str));
                let branch = branch.clone().unwrap_or_else(usual);
                let apply = if is_direct { workspace::apply_commits } else { workspace::apply_to_branch };
                Ok(Applied::Branch(apply(files, order, &branch)?))
            }
            Destination::Worktree(both) => {
                Ok(Applied::Worktree(workspace::apply_to_worktree(files, order, *both)?))
            }
        }
    }

    /// Whether the owner's directory is a repository, so that there can be a branch.
    pub fn has_repository(&self, id: &SandboxId) -> Result<bool, EngineError> {
        Ok(workspace::has_repository(&self.changes(id)?)?)
    }

    /// Throws the changes of a sandbox that does not run away. It can be started again, on the tree as that is by then.
    pub fn discard(&self, id: &SandboxId) -> Result<(), EngineError> {
        let files = self.changes(id)?;
        if self.is_running(id) {
            return Err(EngineError::Running(id.to_string()));
        }
        // Nobody starts it meanwhile.
        let runtime = self.take(id)?;
        let done = workspace::discard(&files, id).map_err(EngineError::from);
        let done = done.and_then(|()| self.prepare_again(id));
        runtime.discard();
        done
    }

    fn prepare_again(&self, id: &SandboxId) -> Result<(), EngineError> {
        let kept = self.kept(id);
        let mut spec = kept.filed()?.spec;
        match self.look_at_workspace(&mut spec) {
            Ok(owner) => {
                self.prepare(&kept, &spec, owner.as_ref())?;
                if let Workspace::Review(_) = spec.workspace {
                    self.record_base_beside(&kept);
                }
            }
            // A directory that is gone or is none any more keeps nobody from throwing away what was made of it.
            Err(EngineError::Workspace(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
