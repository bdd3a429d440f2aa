//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; a lock that can be taken belongs to nobody.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

/// The lock in a sandbox's runtime directory.
pub(crate) const LOCK_FILE: &str = "lock";
/// What a directory is called until it is locked.
pub(crate) const NEW_PREFIX: &str = ".new-";
/// A directory without a lock is being made; after so long nobody is making it any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// Removes what dead sandboxes left. One that cannot be removed does not keep the others from it.
pub(crate) fn reconcile(sandboxes: &Path) {
    let Ok(entries) = fs::read_dir(sandboxes) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let dead = if name.parse::<SandboxId>().is_ok() {
            is_unlocked(&entry.path())
        } else {
            name.starts_with(NEW_PREFIX) && is_abandoned(&entry.path())
        };
        if dead {
            let _ = keeper::clean(&entry.path());
        }
    }
}

fn is_unlocked(runtime: &Path) -> bool {
    File::open(runtime.join(LOCK_FILE))
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

fn is_abandoned(runtime: &Path) -> bool {
    let age = |made: SystemTime| SystemTime::now().duration_since(made).unwrap_or_default();
    fs::symlink_metadata(runtime).and_then(|metadata| metadata.modified()).is_ok_and(|made| age(made) > ABANDONED)
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
        make(".new-abcdefghjkmn");
        make("not-ours");
        reconcile(root.path());
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".new-abcdefghjkmn", "0123456789ab", "not-ours"]);
    }
}
