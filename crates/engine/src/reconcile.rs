//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; one whose lock can be taken belongs to nobody.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

use crate::records::keeper_was_killed;

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

impl Cleaning {
    /// Does something beside other work.
    pub(crate) fn beside(work: impl FnOnce() + Send + 'static) -> Self {
        Self { thread: Some(std::thread::spawn(work)) }
    }
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
pub(crate) fn reconcile(sandboxes: &Path, records: &Path) -> Cleaning {
    let dead = find_dead(sandboxes);
    if dead.is_empty() {
        return Cleaning::default();
    }
    let records = records.to_owned();
    Cleaning::beside(move || {
        for Dead { id, runtime, _lock } in dead {
            // While there is a directory, somebody comes again who puts it on record.
            keeper_was_killed(&records, &id);
            let _ = keeper::clean(&runtime);
        }
    })
}

/// A sandbox whose keeper is no more, locked by us now.
struct Dead {
    id: SandboxId,
    runtime: PathBuf,
    _lock: File,
}

/// The runtime directories that nobody has locked.
fn find_dead(sandboxes: &Path) -> Vec<Dead> {
    let Ok(entries) = fs::read_dir(sandboxes) else { return Vec::new() };
    let dead = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let runtime = entry.path();
        Some(Dead { id, _lock: lock(&runtime).ok()?, runtime })
    };
    entries.flatten().filter_map(dead).collect()
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
        let records = tempfile::tempdir().unwrap();
        drop(reconcile(root.path(), records.path()));
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0123456789ab", "not-ours"]);
    }
}
