//! Cleans up after keepers that were killed. A sandbox's runtime directory is locked by its keeper as long as
//! it lives; one whose lock can be taken belongs to nobody.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use policy::SandboxId;

use crate::directories::Directories;
use crate::kept::{self, Kept};
use crate::records::keeper_was_killed;
use crate::removal;
use crate::runtime::lock;

/// Cleaning up beside other work; dropping it waits for its end.
#[must_use = "dropping it waits"]
#[derive(Debug, Default)]
pub struct Cleaning {
    thread: Option<JoinHandle<()>>,
}

impl Cleaning {
    /// Does something beside other work; where there can be no other thread, the next command does it.
    pub(crate) fn beside(work: impl FnOnce() + Send + 'static) -> Self {
        Self { thread: std::thread::Builder::new().spawn(work).ok() }
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
pub(crate) fn reconcile(directories: &Directories) -> Cleaning {
    let (dead, all) = (find_dead(&directories.sandboxes()), directories.kept());
    let names = kept::names(&all);
    let abandoned = find_abandoned(&all, &names);
    if dead.is_empty() && abandoned.is_empty() && kept::are_swept(&names) {
        return Cleaning::default();
    }
    let directories = directories.clone();
    Cleaning::beside(move || {
        for Dead { id, runtime, _lock } in dead {
            // While there is a directory, somebody comes again who puts it on record.
            keeper_was_killed(&directories.audit(), &id);
            let _ = keeper::clean(&runtime);
        }
        for id in abandoned {
            let _ = removal::remove_abandoned(&directories, &id);
        }
        kept::sweep(&directories.kept());
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

/// New sandboxes of which nobody has been told, nor will be.
fn find_abandoned(all: &Path, names: &[String]) -> Vec<SandboxId> {
    kept::ids_among(names).into_iter().filter(|id| Kept::of(all, id).is_abandoned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dead_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let directories = Directories::at(root.path(), &root.path().join("state"));
        let make = |name: &str| {
            let path = directories.sandboxes().join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let _living = lock(&make("0123456789ab")).unwrap();
        make("ba9876543210");
        make("not-ours");
        drop(reconcile(&directories));
        let mut left: Vec<_> =
            fs::read_dir(directories.sandboxes()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0123456789ab", "not-ours"]);
    }
}
