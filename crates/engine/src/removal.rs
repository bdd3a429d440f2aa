//! Removes a sandbox that does not run: from the list at once, then what was kept of it, then its lock. Whatever a
//! removal that was killed has left is removed by the next command.

use failpoint::Point;
use policy::SandboxId;

use crate::directories::Directories;
use crate::error::EngineError;
use crate::kept::Kept;
use crate::records;
use crate::runtime::{self, Runtime};

/// Removes a sandbox, with all that was kept of it.
pub(crate) fn remove(directories: &Directories, id: &SandboxId) -> Result<(), EngineError> {
    locked(directories, id, || remove_locked(directories, id))
}

/// Removes a new sandbox of which nobody was told and whose maker is gone, unless it still runs.
pub(crate) fn remove_abandoned(directories: &Directories, id: &SandboxId) -> Result<(), EngineError> {
    let is_held = || {
        let held = runtime::lock(&directories.sandboxes().join(id.as_str()));
        held.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    if is_held() {
        return Ok(());
    }
    locked(directories, id, || match Kept::of(&directories.kept(), id).is_abandoned() {
        true => remove_locked(directories, id),
        // Another command has removed it.
        false => Ok(()),
    })
}

/// Does something while nobody else starts or removes the sandbox.
fn locked(
    directories: &Directories,
    id: &SandboxId,
    work: impl FnOnce() -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let runtime = Runtime::take(&directories.sandboxes(), id)?;
    let done = work();
    runtime.discard();
    done
}

fn remove_locked(directories: &Directories, id: &SandboxId) -> Result<(), EngineError> {
    failpoint::pass(Point::EngineRemoving);
    let kept = Kept::of(&directories.kept(), id);
    // Before it is gone: nobody would know whose repository it was. A repository that is gone itself is no hindrance.
    let _ = workspace::unpin(&workspace::Files::of(kept.directory()), id);
    if kept.remove()? {
        // What is on record stays, and says so.
        records::removed(&directories.audit(), id);
        failpoint::pass(Point::EngineRemovalRecorded);
    }
    Ok(())
}
