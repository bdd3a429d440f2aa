//! Removes what a sandbox leaves on the host: its cgroups, by the note that was written before they were made,
//! and its runtime directory. The keeper does it at the end; if it was killed, the next command does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The note of the cgroups, in a sandbox's runtime directory.
pub const CGROUPS_FILE: &str = "cgroups";

/// Removes everything that belongs to the sandbox of this runtime directory.
pub fn clean(runtime: &Path) -> io::Result<()> {
    match fs::read_to_string(runtime.join(CGROUPS_FILE)) {
        Ok(note) => {
            let directories: Vec<PathBuf> = note.lines().map(PathBuf::from).collect();
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
