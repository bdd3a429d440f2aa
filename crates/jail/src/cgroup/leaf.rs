//! A leaf of cgroup v2 for the keeper. Where a delegated cgroup holds nobody but the keeper, as a systemd scope
//! does, or the keeper and the command line that started it, they step aside into a child of it: a cgroup that
//! has processes of its own cannot limit children. Nobody else's process is ever moved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{getpid, getppid};

use super::{PREFIX, once_empty};

/// How a leaf's name ends, so that its processes are never taken for a sandbox's.
const SUFFIX: &str = "-keeper";

#[derive(Debug)]
pub(super) struct Leaf {
    parent: PathBuf,
    directory: PathBuf,
}

impl Leaf {
    pub(super) fn new(parent: &Path, name: &str) -> Self {
        Self { parent: parent.to_owned(), directory: parent.join(format!("{name}{SUFFIX}")) }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the leaf and moves the keeper and its caller into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::create_dir(&self.directory)?;
        move_processes(&self.parent, &self.directory)
    }
}

/// Whether somebody stands in `directory` who may not be moved.
pub(super) fn is_crowded(directory: &Path) -> bool {
    let ours = [Some(getpid()), getppid()].map(|pid| pid.map(|pid| pid.as_raw_nonzero().get()));
    processes(directory).map_or(true, |pids| pids.iter().any(|pid| !ours.contains(&Some(*pid))))
}

pub(super) fn is_leaf(directory: &Path) -> bool {
    directory.to_string_lossy().ends_with(SUFFIX)
}

/// Undoes a leaf: whoever is in it goes back to where it stood, and everything there is as it was before.
pub(super) fn dissolve(leaf: &Path) -> io::Result<()> {
    let Some(parent) = leaf.parent().filter(|_| leaf.exists()) else { return Ok(()) };
    // Another sandbox beside this one would lose its limits; then the leaf has to stay.
    if !is_alone(leaf, parent)? {
        return Ok(());
    }
    fs::write(parent.join("cgroup.subtree_control"), "-memory -cpu -pids")?;
    // Who is just ending there, as a supervisor may be, can no longer be moved.
    once_empty(|| {
        move_processes(leaf, parent)?;
        fs::remove_dir(leaf)
    })
}

fn is_alone(leaf: &Path, parent: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.path() != leaf && entry.file_name().to_string_lossy().starts_with(PREFIX) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn move_processes(from: &Path, to: &Path) -> io::Result<()> {
    for pid in processes(from)? {
        match fs::write(to.join("cgroup.procs"), pid.to_string()) {
            // It has ended in the meantime.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            moved => moved?,
        }
    }
    Ok(())
}

fn processes(directory: &Path) -> io::Result<Vec<i32>> {
    let listed = fs::read_to_string(directory.join("cgroup.procs"))?;
    Ok(listed.lines().filter_map(|line| line.parse().ok()).collect())
}
