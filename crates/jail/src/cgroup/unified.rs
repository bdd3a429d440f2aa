//! cgroup v2: one directory, entered by clone itself, below the nearest place that the caller may change.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use policy::{Limits, Report};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::hierarchy::lists_all_controllers;
use super::leaf::{self, Leaf};
use super::{Controller, Hierarchies, remove_directories, report_limit, setting};
use crate::error::JailError;
use crate::step::{Step, inside};

#[derive(Debug)]
pub(super) struct Unified {
    /// Whose children we make: root's own directory, or a delegated one.
    parent: PathBuf,
    /// Where the keeper itself goes, if it stands in the parent: a cgroup with processes cannot limit children.
    leaf: Option<Leaf>,
    sandbox: PathBuf,
    entrance: Option<OwnedFd>,
}

impl Unified {
    pub(super) fn find(hierarchies: &Hierarchies, name: &str) -> Result<Self, String> {
        let Some(hierarchy) = &hierarchies.unified else {
            return Err("no cgroup v2 hierarchy is mounted".to_owned());
        };
        if !hierarchy.has_all_controllers() {
            return Err("the controllers are not on cgroup v2".to_owned());
        }
        if geteuid().is_root() {
            let parent = hierarchy.mount.join("agentbox");
            return Ok(Self { sandbox: parent.join(name), parent, leaf: None, entrance: None });
        }
        let mut reason = "no cgroup is delegated to the caller".to_owned();
        // From the caller's own upwards: what is further up is more likely to be somebody else's to arrange,
        // as systemd's slices are.
        let above = hierarchy.own.ancestors();
        let above =
            above.take_while(|place| place.starts_with(&hierarchy.mount) && *place != hierarchy.mount);
        for parent in above.filter(|place| is_delegated(place)) {
            if !lists_all_controllers(&parent.join("cgroup.subtree_control")) && leaf::is_crowded(parent) {
                reason = format!("other processes stand in the delegated cgroup '{}'", parent.display());
                continue;
            }
            let leaf = (parent == hierarchy.own).then(|| Leaf::new(parent, name));
            return Ok(Self { sandbox: parent.join(name), parent: parent.to_owned(), leaf, entrance: None });
        }
        Err(reason)
    }

    pub(super) fn sandbox(&self) -> &Path {
        &self.sandbox
    }

    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.leaf.iter().map(Leaf::directory).chain([self.sandbox.as_path()]).map(Path::to_owned).collect()
    }

    pub(super) fn create(&mut self, limits: &Limits, report: &mut Report) -> Result<(), String> {
        let problem = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        if geteuid().is_root() {
            fs::create_dir_all(&self.parent).map_err(|error| problem(&self.parent, error))?;
            if let Some(top) = self.parent.parent() {
                enable_controllers(top).map_err(|error| problem(top, error))?;
            }
        }
        if let Some(leaf) = &self.leaf {
            leaf.enter().map_err(|error| problem(leaf.directory(), error))?;
        }
        enable_controllers(&self.parent).map_err(|error| problem(&self.parent, error))?;
        fs::create_dir(&self.sandbox).map_err(|error| problem(&self.sandbox, error))?;
        for controller in Controller::ALL {
            setting::set(&self.sandbox, controller, limits).map_err(|error| problem(&self.sandbox, error))?;
            report_limit(report, controller, limits, "v2");
        }
        let entrance = fs::File::open(&self.sandbox).map_err(|error| problem(&self.sandbox, error))?;
        self.entrance = Some(entrance.into());
        Ok(())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_directories(&self.directories())
    }

    pub(super) fn entrance(&self) -> Option<BorrowedFd<'_>> {
        self.entrance.as_ref().map(|entrance| entrance.as_fd())
    }
}

/// A delegated directory is one that the caller may arrange, and in which it finds every controller.
fn is_delegated(directory: &Path) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    writable(directory)
        && writable(&directory.join("cgroup.procs"))
        && writable(&directory.join("cgroup.subtree_control"))
        && lists_all_controllers(&directory.join("cgroup.controllers"))
}

/// Lets the children of `directory` have limits; what is enabled already stays.
fn enable_controllers(directory: &Path) -> io::Result<()> {
    let path = directory.join("cgroup.subtree_control");
    if lists_all_controllers(&path) {
        return Ok(());
    }
    fs::write(path, "+memory +cpu +pids")
}

pub(super) fn steps() -> Result<Vec<Step>, JailError> {
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let path = inside(Path::new("/sys/fs/cgroup"))?;
    Ok(vec![Step::FileSystem { kind: c"cgroup2".to_owned(), path, flags, options: None }])
}
