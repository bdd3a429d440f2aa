//! cgroup v1, as hybrid hosts have it: one directory below the caller's own in each hierarchy.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use policy::{Limits, Report, Wall};
use rustix::fs::{Access, access};

use super::hierarchy::Hierarchy;
use super::{Controller, Hierarchies, freezer, report_limit, setting};
use crate::error::JailError;
use crate::step::{Owner, Step, host_path, inside};

#[derive(Debug)]
pub(super) struct Legacy {
    places: Vec<Place>,
}

/// The sandbox's directory in one hierarchy.
#[derive(Debug)]
struct Place {
    /// What is limited there; none for the one that can be frozen.
    controller: Option<Controller>,
    directory: PathBuf,
    /// The controllers that are mounted together, as mount options.
    options: String,
    /// The file to which a thread writes to move in, once the directory is made.
    door: Option<OwnedFd>,
}

impl Legacy {
    /// Whether any of our controllers is on v1, whoever may use it.
    pub(super) fn is_there(hierarchies: &Hierarchies) -> bool {
        let names = hierarchies.legacy.iter().flat_map(|hierarchy| &hierarchy.controllers);
        names.into_iter().any(|name| Controller::ALL.iter().any(|controller| controller.name() == name))
    }

    /// Finds the hierarchies in which the caller may make a directory; none at all is no place.
    pub(super) fn find(hierarchies: &Hierarchies, name: &str) -> Option<Self> {
        let find = |controller: Option<Controller>| {
            let wanted = controller.map_or(freezer::NAME, Controller::name);
            let has = |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|name| name == wanted);
            let hierarchy = hierarchies.legacy.iter().find(has)?;
            access(&hierarchy.own, Access::WRITE_OK).ok()?;
            let options =
                hierarchy.controllers.iter().filter(|option| !matches!(option.as_str(), "rw" | "ro"));
            Some(Place {
                controller,
                directory: hierarchy.own.join(name),
                options: options.cloned().collect::<Vec<_>>().join(","),
                door: None,
            })
        };
        let mut places: Vec<Place> =
            Controller::ALL.into_iter().filter_map(|controller| find(Some(controller))).collect();
        if places.is_empty() {
            return None;
        }
        places.extend(find(None));
        Some(Self { places })
    }

    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.directory.clone()).collect()
    }

    pub(super) fn directory(&self, controller: Controller) -> Option<&Path> {
        let place = self.places.iter().find(|place| place.controller == Some(controller))?;
        Some(&place.directory)
    }

    pub(super) fn create(&mut self, limits: &Limits, report: &mut Report) -> Result<(), String> {
        for place in &mut self.places {
            let path = place.directory.display().to_string();
            let problem = |error: io::Error| format!("{path}: {error}");
            match fs::create_dir(&place.directory) {
                // Controllers that are mounted together share their directory.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(problem)?,
            }
            if let Some(controller) = place.controller {
                setting::set(&place.directory, controller, limits).map_err(problem)?;
                report_limit(report, controller, limits, "v1");
            }
            let door = fs::File::options().write(true).open(place.directory.join("tasks"));
            place.door = Some(door.map_err(problem)?.into());
        }
        for controller in Controller::ALL {
            if !self.places.iter().any(|place| place.controller == Some(controller)) {
                let detail = format!("the caller may make no cgroup in the {} hierarchy", controller.name());
                let hint = "run as root, or have the hierarchy's directory handed over";
                match controller {
                    Controller::Memory => report.missing(Wall::MemoryLimit, detail, hint),
                    Controller::Cpu => report.missing(Wall::CpuLimit, detail, hint),
                    // RLIMIT_NPROC stands in for it.
                    Controller::Pids => {
                        let detail = format!("{} by RLIMIT_NPROC of its user namespace", limits.pids);
                        report.weaker(Wall::PidsLimit, detail, hint);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn thaw(&self) {
        if let Some(place) = self.places.iter().find(|place| place.controller.is_none()) {
            // What is not frozen stays so.
            let _ = freezer::thaw(&place.directory);
        }
    }

    /// The files by which a process moves its one thread in.
    pub(super) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.places.iter().filter_map(|place| place.door.as_ref()).map(AsFd::as_fd)
    }

    pub(super) fn steps(&self) -> Result<Vec<Step>, JailError> {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let mut steps = Vec::new();
        let mut mounted: Vec<&str> = Vec::new();
        for place in self.places.iter().filter(|place| place.controller.is_some()) {
            // Controllers that are mounted together are one hierarchy and show once.
            if mounted.contains(&place.options.as_str()) {
                continue;
            }
            mounted.push(&place.options);
            let path = inside(&Path::new("/sys/fs/cgroup").join(&place.options))?;
            steps.push(Step::Directory { path: path.clone(), mode: 0o755, owner: Owner::Builder });
            let options = Some(host_path(Path::new(&place.options))?);
            steps.push(Step::FileSystem { kind: c"cgroup".to_owned(), path, flags, options });
        }
        Ok(steps)
    }
}
