//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; a lock that can be taken belongs to nobody. One that is not locked yet has another name, and
//! whoever makes it shares a lock on the directory of all sandboxes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

/// The lock in a sandbox's runtime directory.
pub(crate) const LOCK_FILE: &str = "lock";
/// What a directory is called until it is locked.
pub(crate) const NEW_PREFIX: &str = ".new-";

/// Removes what dead sandboxes left. One that cannot be removed does not keep the others from it.
pub(crate) fn reconcile(sandboxes: &Path) {
    let Ok(entries) = fs::read_dir(sandboxes) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let dead = if name.parse::<SandboxId>().is_ok() {
            is_unlocked(&entry.path())
        } else {
            name.starts_with(NEW_PREFIX) && is_abandoned(sandboxes, &entry.path())
        };
        if dead {
            let _ = keeper::clean(&entry.path());
        }
    }
}

/// A directory has its name only once it is locked: one without a lock was left half removed.
fn is_unlocked(runtime: &Path) -> bool {
    match File::open(runtime.join(LOCK_FILE)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Shared by all who are about to make a runtime directory, until it is locked and has its own name.
pub(crate) fn lock_making(sandboxes: &Path) -> io::Result<File> {
    let making = File::open(sandboxes)?;
    flock(&making, FlockOperation::LockShared)?;
    Ok(making)
}

/// A directory that is still there once nobody is making any was left by somebody who was killed.
fn is_abandoned(sandboxes: &Path, runtime: &Path) -> bool {
    let nobody = |making: File| flock(&making, FlockOperation::NonBlockingLockExclusive).is_ok();
    File::open(sandboxes).is_ok_and(nobody) && runtime.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dead_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let directory = root.path().join(name);
            fs::create_dir(&directory).unwrap();
            File::create(directory.join(LOCK_FILE)).unwrap()
        };
        let living = make("0123456789ab");
        flock(&living, FlockOperation::LockExclusive).unwrap();
        make("ba9876543210");
        make("aaaaaaaaaaaa");
        fs::remove_file(root.path().join("aaaaaaaaaaaa").join(LOCK_FILE)).unwrap();
        make(".new-abcdefghjkmn");
        make("not-ours");
        let left = || {
            reconcile(root.path());
            let mut left: Vec<_> =
                fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            left.sort();
            left
        };
        let making = lock_making(root.path()).unwrap();
        assert_eq!(left(), [".new-abcdefghjkmn", "0123456789ab", "not-ours"]);
        drop(making);
        assert_eq!(left(), ["0123456789ab", "not-ours"]);
    }
}
