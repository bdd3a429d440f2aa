//! Whether anything waits in a workspace, and how it is thrown away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use policy::SandboxId;
use rustix::io::Errno;

use crate::base::{Base, is_beneath, read_paths};
use crate::commits;
use crate::error::ReviewError;
use crate::journal;
use crate::layer::{Directory, Kind};
use crate::limits::Limits;
use crate::pin;
use crate::record::{Files, Mode};
use crate::snapshot::Snapshot;
use crate::store::{Store, read_recorded};
use crate::walk::joined;

/// Whether anything was written inside, by the layer alone: what git ignores counts, too. It ends at the first change, and
/// does not wait for the base.
pub fn has_changes(files: &Files) -> Result<bool, ReviewError> {
    let upper = files.upper();
    let failed = |errno: Errno| ReviewError::file(&upper)(errno.into());
    let top = match Directory::top(&upper) {
        Err(Errno::NOENT) => return Ok(false),
        top => top.map_err(failed)?,
    };
    let recorded = read_recorded(files)?;
    if recorded.mode == Mode::Direct {
        return Ok(commits_wait(files));
    }
    if commits::tip_inside(files, &recorded).is_some() {
        return Ok(true);
    }
    let hidden = read_paths(&files.hidden())?;
    let (limits, mut waiting, mut seen) = (Limits::default(), vec![(top, Vec::new())], 0);
    while let Some((directory, path)) = waiting.pop() {
        if !path.is_empty() && directory.notes().is_opaque {
            return Ok(true);
        }
        let entries = directory.entries(limits.entries).map_err(failed)?;
        // One with so many entries is no empty one.
        let Some(entries) = entries else { return Ok(true) };
        seen += entries.len() as u64;
        if seen > limits.entries || waiting.len() > limits.depth {
            return Ok(true);
        }
        for entry in entries.into_iter().filter(|entry| entry.name != b".git") {
            let path = joined(&path, &entry.name);
            match entry.kind {
                Kind::Whiteout if is_beneath(&hidden, &path) => {}
                Kind::Directory => match directory.directory(&entry.name) {
                    Ok(inner) => waiting.push((inner, path)),
                    Err(_) => return Ok(true),
                },
                Kind::Whiteout | Kind::File | Kind::Link | Kind::Special => return Ok(true),
            }
        }
    }
    Ok(false)
}

/// Whether there is anything that the owner has not taken: exactly, as `diff` would show it.
pub fn is_waiting(files: &Files) -> Result<bool, ReviewError> {
    if !has_changes(files)? {
        return Ok(false);
    }
    let store = Store::open(files)?;
    if store.recorded.mode == Mode::Direct {
        return Ok(true);
    }
    journal::recover(&store)?;
    let base = Base::of(&store)?;
    let snapshot = Snapshot::take(&store, &base, &commits::also_known(&store, &base)?)?;
    let applied = fs::read_to_string(store.own("applied")).unwrap_or_default();
    Ok(snapshot.tree != base.tree && snapshot.tree != applied.trim())
}

/// Whether commits from inside wait that are not a branch yet. All else is never waited for where the tree itself was
/// worked on.
fn commits_wait(files: &Files) -> bool {
    let Ok(recorded) = read_recorded(files) else { return false };
    let applied = fs::read_to_string(files.review().join("applied")).unwrap_or_default();
    commits::tip_inside(files, &recorded).is_some_and(|tip| tip != applied.trim())
}

/// How the workspace is worked on.
pub fn mode(files: &Files) -> Result<Mode, ReviewError> {
    Ok(read_recorded(files)?.mode)
}

/// Whether all that there was has been taken at least once.
#[must_use]
pub fn was_applied(files: &Files) -> bool {
    files.review().join("applied").exists()
}

/// Whether the owner's directory is the top of a repository.
pub fn has_repository(files: &Files) -> Result<bool, ReviewError> {
    Ok(read_recorded(files)?.repository.is_some())
}

/// The owner's object stores, and the commit that everything began with.
pub fn objects(files: &Files) -> Result<(Vec<PathBuf>, Option<String>), ReviewError> {
    let repository = read_recorded(files)?.repository;
    Ok(repository.map(|found| (found.objects, found.head.commit)).unwrap_or_default())
}

/// Undoes or forgets an apply that was cut off.
pub fn recover(files: &Files) -> Result<(), ReviewError> {
    journal::recover(&Store::open(files)?)
}

/// Forgets the changes: what was written inside, and everything of ours about it. Only for one that does not run.
pub fn discard(files: &Files, id: &SandboxId) -> Result<(), ReviewError> {
    let store = Store::open(files)?;
    journal::recover(&store)?;
    pin::unpin(files, id).map_err(ReviewError::file(&store.recorded.owner))?;
    let layer = files.upper();
    let layer = layer.parent().unwrap_or(&layer);
    for directory in [layer, &files.review()] {
        remove(directory)?;
    }
    Ok(())
}

/// Removes a tree whose directories somebody may have closed.
fn remove(directory: &Path) -> Result<(), ReviewError> {
    use std::os::unix::ffi::OsStrExt as _;
    let failed = ReviewError::file(directory);
    let name = directory.as_os_str().as_bytes();
    match archive::empty(rustix::fs::CWD, name, archive::Closed::Opened) {
        Err(error) if error.errno == Errno::NOENT => return Ok(()),
        emptied => emptied.map_err(|error| failed(error.errno.into()))?,
    };
    match fs::remove_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}
