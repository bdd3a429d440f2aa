//! What is known of a workspace without looking at its changes, and how they are thrown away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use policy::SandboxId;
use rustix::io::Errno;

use crate::error::ReviewError;
use crate::journal;
use crate::pin;
use crate::record::{Files, Mode};
use crate::store::{Store, read_recorded};

/// How the workspace is worked on.
pub fn mode(files: &Files) -> Result<Mode, ReviewError> {
    Ok(read_recorded(files)?.mode)
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
