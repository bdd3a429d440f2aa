//! Removes what a sandbox leaves on the host: its cgroups, by the note that was written before they were made,
//! and its runtime directory. The keeper does it at the end; if it was killed, the next command does.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The note of the cgroups, in a sandbox's runtime directory.
pub(crate) const CGROUPS_FILE: &str = "cgroups";

/// The file in a runtime directory that says that everything inside stands still, and why where its keeper did it.
pub const PAUSED_FILE: &str = "paused";

/// What is in it when more is on the disk than may be.
pub const DISK_FULL: &str = "disk";

/// What a sandbox has on the host's file systems, as its keeper holds it.
pub(crate) struct Remains {
    runtime: PathBuf,
    /// Until it is dropped no other command takes the sandbox for a dead one's.
    lock: Option<OwnedFd>,
}

impl Remains {
    pub(crate) const fn new(runtime: PathBuf, lock: OwnedFd) -> Self {
        Self { runtime, lock: Some(lock) }
    }

    /// Removes what is in the runtime directory. The directory itself, and its lock, stay to the end: while they are
    /// there, the sandbox is.
    pub(crate) fn empty(&self) {
        // What could not be removed is tried again, and told, in the end.
        for entry in fs::read_dir(&self.runtime).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Removes it all.
    pub(crate) fn remove(&mut self) -> io::Result<()> {
        clean(&self.runtime)?;
        self.lock = None;
        Ok(())
    }
}

/// The cgroups of the sandbox of this runtime directory, as its keeper wrote them down.
#[must_use]
pub fn cgroups(runtime: &Path) -> Vec<PathBuf> {
    fs::read_to_string(runtime.join(CGROUPS_FILE)).map(|note| parse_note(&note)).unwrap_or_default()
}

fn parse_note(note: &str) -> Vec<PathBuf> {
    note.lines().map(PathBuf::from).collect()
}

/// Removes everything that belongs to the sandbox of this runtime directory.
pub fn clean(runtime: &Path) -> io::Result<()> {
    match fs::read_to_string(runtime.join(CGROUPS_FILE)) {
        Ok(note) => {
            let directories = parse_note(&note);
            // A killed keeper's sandbox may be frozen, and then could not die with it.
            jail::thaw_directories(&directories);
            jail::remove_directories(&directories)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match fs::remove_dir_all(runtime) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
