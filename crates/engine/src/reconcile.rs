//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; one whose lock can be taken belongs to nobody.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

/// Locks a sandbox's runtime directory, if nobody has.
pub(crate) fn lock(runtime: &Path) -> io::Result<File> {
    let directory = File::open(runtime)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    Ok(directory)
}

/// Cleaning up beside other work; dropping it waits for its end.
#[must_use = "dropping it waits"]
#[derive(Debug, Default)]
pub struct Cleaning {
    thread: Option<JoinHandle<()>>,
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Removes what dead sandboxes left. One that cannot be removed does not keep the others from it. A directory
/// that another command has made but not locked yet goes too: that command notices and makes it once more.
///
/// What was killed a moment ago may still be dying, and a command that is about to run does not wait for that.
pub(crate) fn reconcile(sandboxes: &Path) -> Cleaning {
    let dead = find_dead(sandboxes);
    if dead.is_empty() {
        return Cleaning::default();
    }
    let clean = move || {
        for (runtime, _lock) in dead {
            let _ = keeper::clean(&runtime);
        }
    };
    Cleaning { thread: Some(std::thread::spawn(clean)) }
}

/// The runtime directories that nobody has locked, locked now.
fn find_dead(sandboxes: &Path) -> Vec<(PathBuf, File)> {
    let Ok(entries) = fs::read_dir(sandboxes) else { return Vec::new() };
    let is_ours = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<SandboxId>().is_ok());
    let ours = entries.flatten().filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path());
    ours.filter_map(|runtime| lock(&runtime).ok().map(|lock| (runtime, lock))).collect()
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
        drop(reconcile(root.path()));
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0123456789ab", "not-ours"]);
    }
}
