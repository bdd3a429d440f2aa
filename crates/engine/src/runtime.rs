//! The runtime directory of a sandbox, which is its lock: whoever holds it starts, keeps or removes the sandbox, and
//! nobody else does at that time.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use failpoint::Point;
use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

use crate::error::EngineError;

/// How often a directory that another has locked is tried, with a millisecond in between: whoever only looks at it, or
/// removes what is dead, is done sooner.
const TRIES: usize = 100;

/// A runtime directory, new, empty and locked.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) directory: PathBuf,
    pub(crate) lock: File,
}

/// Locks a file or directory of ours, if nobody has. One that was removed after it was opened can be locked, too, and
/// another may stand in its place by then, which is somebody else's.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    lock_open(File::open(path)?, path)
}

fn lock_open(file: File, path: &Path) -> io::Result<File> {
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if is_at(&file, path) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

impl Runtime {
    /// Makes and locks it. What a dead keeper left there goes first. Between the two, another command may take it for
    /// a dead one's and remove it; then it is made once more.
    pub(crate) fn take(sandboxes: &Path, id: &SandboxId) -> Result<Self, EngineError> {
        let directory = sandboxes.join(id.as_str());
        let mut failure = io::Error::from(io::ErrorKind::ResourceBusy);
        for _ in 0..TRIES {
            let made = match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                made => made.map(|()| true).map_err(|source| unusable(&directory, source))?,
            };
            failpoint::pass(Point::EngineRuntimeMade);
            match lock(&directory) {
                Ok(lock) if made => {
                    failpoint::pass(Point::EngineRuntimeLocked);
                    return Ok(Self { directory, lock });
                }
                Ok(_dead) => keeper::clean(&directory).map_err(|source| unusable(&directory, source))?,
                Err(error) => failure = error,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if failure.kind() == io::ErrorKind::WouldBlock {
            return Err(EngineError::Running(id.to_string()));
        }
        Err(unusable(&directory, failure))
    }

    /// Removes it, with whatever is there of a sandbox.
    pub(crate) fn discard(self) {
        let _ = keeper::clean(&self.directory);
    }
}

fn unusable(path: &Path, source: io::Error) -> EngineError {
    EngineError::File { path: path.to_owned(), source }
}

/// Whether an open file is the one that has this path.
fn is_at(open: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (open.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(there)) => number(open) == number(there),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_place_of_a_dead_one_is_not_locked() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("0123456789ab");
        std::fs::create_dir(&path).unwrap();
        let dead = || File::open(&path).unwrap();
        assert!(lock_open(dead(), &path).is_ok());
        let opened = dead();
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(lock_open(opened, &path).is_err());
    }

    #[test]
    fn one_takes_it_and_what_was_left_there_goes() {
        let root = tempfile::tempdir().unwrap();
        let id: SandboxId = "0123456789ab".parse().unwrap();
        std::fs::create_dir(root.path().join(id.as_str())).unwrap();
        std::fs::write(root.path().join(id.as_str()).join("control.sock"), "left").unwrap();
        let taken = Runtime::take(root.path(), &id).unwrap();
        assert_eq!(std::fs::read_dir(&taken.directory).unwrap().count(), 0);
        assert!(matches!(Runtime::take(root.path(), &id), Err(EngineError::Running(_))));
        taken.discard();
        Runtime::take(root.path(), &id).unwrap().discard();
    }
}
