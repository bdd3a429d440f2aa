//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; one whose lock can be taken belongs to nobody.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

/// Locks a sandbox's runtime directory, if nobody has.
pub(crate) fn lock(runtime: &Path) -> io::Result<File> {
    let directory = File::open(runtime)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    Ok(directory)
}

/// Removes what dead sandboxes left. One that cannot be removed does not keep the others from it. A directory
/// that another command has made but not locked yet goes too: that command notices and makes it once more.
pub(crate) fn reconcile(sandboxes: &Path) {
    let Ok(entries) = fs::read_dir(sandboxes) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.parse::<SandboxId>().is_ok());
        if ours && let Ok(_lock) = lock(&entry.path()) {
            let _ = keeper::clean(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dead_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            fs::create_dir(root.path().join(name)).unwrap();
            root.path().join(name)
        };
        let _living = lock(&make("0123456789ab")).unwrap();
        make("ba9876543210");
        make("not-ours");
        reconcile(root.path());
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0123456789ab", "not-ours"]);
    }
}
