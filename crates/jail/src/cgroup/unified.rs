//! cgroup v2: one directory, entered by clone itself, below the nearest place that the caller may change.

use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use policy::{Limits, Report};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::{Controller, Hierarchies, PERIOD_MICROSECONDS, quota_microseconds, remove_directories, report_limit};
use crate::error::JailError;
use crate::step::{Step, inside};

#[derive(Debug)]
pub(super) struct Unified {
    /// Whose children we make: root's own directory, or a delegated one.
    parent: PathBuf,
    /// Where the keeper itself goes, if it stands in the parent: a cgroup with processes cannot limit children.
    keeper: Option<PathBuf>,
    sandbox: PathBuf,
    entrance: Option<OwnedFd>,
}

impl Unified {
    pub(super) fn find(hierarchies: &Hierarchies, name: &str) -> Result<Self, String> {
        let Some(hierarchy) = &hierarchies.unified else {
            return Err("no cgroup v2 hierarchy is mounted".to_owned());
        };
        if !has_all_controllers(&hierarchy.mount) {
            return Err("the controllers are not on cgroup v2".to_owned());
        }
        if geteuid().is_root() {
            let parent = hierarchy.mount.join("agentbox");
            return Ok(Self { sandbox: parent.join(name), parent, keeper: None, entrance: None });
        }
        // A delegated directory is one that the caller owns: its own, or one above it.
        let delegated = hierarchy
            .own
            .ancestors()
            .take_while(|directory| directory.starts_with(&hierarchy.mount) && *directory != hierarchy.mount)
            .filter(|directory| {
                access(directory.join("cgroup.procs"), Access::WRITE_OK).is_ok()
                    && access(*directory, Access::WRITE_OK).is_ok()
                    && has_all_controllers(directory)
            });
        // One above is better: its children may have limits without anybody having to move.
        let Some(parent) = delegated.last().map(Path::to_owned) else {
            return Err("no cgroup is delegated to the caller".to_owned());
        };
        let keeper = (parent == hierarchy.own).then(|| parent.join(format!("{name}-keeper")));
        Ok(Self { sandbox: parent.join(name), parent, keeper, entrance: None })
    }

    pub(super) fn sandbox(&self) -> &Path {
        &self.sandbox
    }

    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.keeper.iter().chain([&self.sandbox]).cloned().collect()
    }

    pub(super) fn create(&mut self, limits: &Limits, report: &mut Report) -> Result<(), String> {
        let problem = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        if geteuid().is_root() {
            fs::create_dir_all(&self.parent).map_err(|error| problem(&self.parent, error))?;
            if let Some(top) = self.parent.parent() {
                enable_controllers(top).map_err(|error| problem(top, error))?;
            }
        }
        if let Some(keeper) = &self.keeper {
            fs::create_dir(keeper).map_err(|error| problem(keeper, error))?;
            fs::write(keeper.join("cgroup.procs"), "0").map_err(|error| problem(keeper, error))?;
        }
        enable_controllers(&self.parent).map_err(|error| problem(&self.parent, error))?;
        fs::create_dir(&self.sandbox).map_err(|error| problem(&self.sandbox, error))?;
        let set = |file: &str, value: String| {
            let path = self.sandbox.join(file);
            fs::write(&path, value).map_err(|error| problem(&path, error))
        };
        set("memory.max", limits.memory.as_bytes().to_string())?;
        // Without swap accounting this file is absent, and there is no swap to limit.
        let _ = set("memory.swap.max", "0".to_owned());
        set("cpu.max", format!("{} {PERIOD_MICROSECONDS}", quota_microseconds(limits)))?;
        set("pids.max", limits.pids.to_string())?;
        for controller in Controller::ALL {
            report_limit(report, controller, limits, "v2");
        }
        let entrance = fs::File::open(&self.sandbox).map_err(|error| problem(&self.sandbox, error))?;
        self.entrance = Some(entrance.into());
        Ok(())
    }

    pub(super) fn remove(&self) -> std::io::Result<()> {
        remove_directories(std::slice::from_ref(&self.sandbox))?;
        if let Some(keeper) = &self.keeper {
            // Only a cgroup whose children have no limits takes the keeper back.
            fs::write(self.parent.join("cgroup.subtree_control"), "-memory -cpu -pids")?;
            fs::write(self.parent.join("cgroup.procs"), "0")?;
            remove_directories(std::slice::from_ref(keeper))?;
        }
        Ok(())
    }

    pub(super) fn entrance(&self) -> Option<BorrowedFd<'_>> {
        self.entrance.as_ref().map(|entrance| entrance.as_fd())
    }
}

fn has_all_controllers(directory: &Path) -> bool {
    let controllers = fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
    Controller::ALL.iter().all(|controller| controllers.split_whitespace().any(|name| name == controller.name()))
}

/// Lets the children of `directory` have limits; what is enabled already stays.
fn enable_controllers(directory: &Path) -> std::io::Result<()> {
    let path = directory.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&path)?;
    let enabled: Vec<&str> = enabled.split_whitespace().collect();
    if Controller::ALL.iter().all(|controller| enabled.contains(&controller.name())) {
        return Ok(());
    }
    fs::write(path, "+memory +cpu +pids")
}

pub(super) fn steps() -> Result<Vec<Step>, JailError> {
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let path = inside(Path::new("/sys/fs/cgroup"))?;
    Ok(vec![Step::FileSystem { kind: c"cgroup2", path, flags, options: None }])
}
