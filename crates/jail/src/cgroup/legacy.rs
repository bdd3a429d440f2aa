//! cgroup v1, as hybrid hosts have it: one directory below the caller's own in each hierarchy.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use policy::{Limits, Report, Wall};
use rustix::fs::{Access, access};

use super::hierarchy::Hierarchy;
use super::{Controller, Hierarchies, PERIOD_MICROSECONDS, quota_microseconds, report_limit};
use crate::error::JailError;
use crate::step::{Owner, Step, host_path, inside};

#[derive(Debug)]
pub(super) struct Legacy {
    places: Vec<Place>,
}

/// The sandbox's directory in one hierarchy.
#[derive(Debug)]
struct Place {
    controller: Controller,
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
        let mut places = Vec::new();
        for controller in Controller::ALL {
            let has = |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|c| c == controller.name());
            let Some(hierarchy) = hierarchies.legacy.iter().find(has) else { continue };
            if access(&hierarchy.own, Access::WRITE_OK).is_err() {
                continue;
            }
            let options =
                hierarchy.controllers.iter().filter(|option| !matches!(option.as_str(), "rw" | "ro"));
            places.push(Place {
                controller,
                directory: hierarchy.own.join(name),
                options: options.cloned().collect::<Vec<_>>().join(","),
                door: None,
            });
        }
        (!places.is_empty()).then_some(Self { places })
    }

    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.directory.clone()).collect()
    }

    pub(super) fn memory(&self) -> Option<&Path> {
        let place = self.places.iter().find(|place| place.controller == Controller::Memory)?;
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
            place.set(limits).map_err(problem)?;
            let door = fs::File::options().write(true).open(place.directory.join("tasks"));
            place.door = Some(door.map_err(problem)?.into());
            report_limit(report, place.controller, limits, "v1");
        }
        for controller in Controller::ALL {
            if !self.places.iter().any(|place| place.controller == controller) {
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

    /// The files by which a process moves its one thread in.
    pub(super) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.places.iter().filter_map(|place| place.door.as_ref()).map(AsFd::as_fd)
    }

    pub(super) fn steps(&self) -> Result<Vec<Step>, JailError> {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let mut steps = Vec::new();
        let mut mounted: Vec<&str> = Vec::new();
        for place in &self.places {
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

impl Place {
    fn set(&self, limits: &Limits) -> io::Result<()> {
        let set = |file: &str, value: u64| fs::write(self.directory.join(file), value.to_string());
        match self.controller {
            Controller::Memory => {
                set("memory.limit_in_bytes", limits.memory.as_bytes())?;
                // Memory and swap together, where the kernel counts swap.
                let both = "memory.memsw.limit_in_bytes";
                if self.directory.join(both).exists() {
                    set(both, limits.memory.as_bytes())?;
                }
                Ok(())
            }
            Controller::Cpu => {
                set("cpu.cfs_period_us", PERIOD_MICROSECONDS)?;
                set("cpu.cfs_quota_us", quota_microseconds(limits))
            }
            Controller::Pids => set("pids.max", u64::from(limits.pids.count())),
        }
    }
}
