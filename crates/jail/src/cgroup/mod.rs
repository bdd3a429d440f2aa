//! Limits on memory, processors and processes by cgroups: one v2 directory that the sandbox is cloned into,
//! or one directory in each v1 hierarchy that it moves itself into. Made and removed by the keeper; the limits may be
//! changed by any process of the owner's.

mod freezer;
mod hierarchy;
mod leaf;
mod legacy;
mod living;
mod setting;
mod unified;

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use policy::{Limits, Report, SandboxId, Wall};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::JailError;
use crate::step::Step;
pub use hierarchy::{Controller, Hierarchies};
use legacy::Legacy;
pub use living::{CgroupUsage, LivingCgroup};
use unified::Unified;

/// How the kernel knows a file system of cgroups v2.
const UNIFIED_MAGIC: i64 = 0x6367_7270;
/// What every directory of ours begins with, so that nothing else is ever removed.
const PREFIX: &str = "agentbox-";

/// The cgroups of one sandbox.
#[derive(Debug)]
pub struct Cgroup {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unified(Unified),
    Legacy(Legacy),
}

impl Cgroup {
    /// Finds where the caller may make cgroups; nothing is made yet. The error says why there is no place.
    pub(crate) fn find(hierarchies: &Hierarchies, id: &SandboxId) -> Result<Self, String> {
        let name = format!("{PREFIX}{id}");
        let kind = match unified::Unified::find(hierarchies, &name) {
            Ok(unified) => Kind::Unified(unified),
            Err(reason) => match Legacy::find(hierarchies, &name) {
                Some(legacy) => Kind::Legacy(legacy),
                // What v2 lacks here is on v1.
                None if Legacy::is_there(hierarchies) => {
                    return Err("the v1 cgroups of this machine are not the caller's to divide".to_owned());
                }
                None => return Err(reason),
            },
        };
        Ok(Self { kind })
    }

    /// The directories that [`Self::create`] will make, to be written down before.
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        match &self.kind {
            Kind::Unified(unified) => unified.directories(),
            Kind::Legacy(legacy) => legacy.directories(),
        }
    }

    /// Makes the directories and sets the limits; each limit that was set or not goes into the report.
    pub fn create(&mut self, limits: &Limits, report: &mut Report) -> Result<(), String> {
        match &mut self.kind {
            Kind::Unified(unified) => unified.create(limits, report),
            Kind::Legacy(legacy) => legacy.create(limits, report),
        }
    }

    /// Whether the only way into cgroups here is likely to be cloned into one. Quickly answered; what is true is
    /// known when they were found.
    #[must_use]
    pub fn are_entered_by_clone() -> bool {
        rustix::fs::statfs("/sys/fs/cgroup").is_ok_and(|found| found.f_type == UNIFIED_MAGIC)
    }

    /// Whether the only way in is to be cloned into it.
    #[must_use]
    pub fn is_entered_by_clone(&self) -> bool {
        matches!(self.kind, Kind::Unified(_))
    }

    /// The directory to be cloned into, on v2.
    pub(crate) fn entrance(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Unified(unified) => unified.entrance(),
            Kind::Legacy(_) => None,
        }
    }

    /// The files by which the builder moves itself in, on v1. A thread that moves itself is spared the grace period
    /// that the kernel waits for when a process is moved, which on an idle machine takes ten milliseconds.
    pub(crate) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let legacy = match &self.kind {
            Kind::Unified(_) => None,
            Kind::Legacy(legacy) => Some(legacy),
        };
        legacy.into_iter().flat_map(Legacy::doors)
    }

    /// The steps that show the sandbox its own cgroup, read-only.
    pub(crate) fn steps(&self) -> Result<Vec<Step>, JailError> {
        match &self.kind {
            Kind::Unified(_) => unified::steps(),
            Kind::Legacy(legacy) => legacy.steps(),
        }
    }

    /// How many processes inside the kernel has killed for want of memory.
    #[must_use]
    pub fn out_of_memory_kills(&self) -> u64 {
        match &self.kind {
            Kind::Unified(unified) => count(unified.sandbox().join("memory.events"), "oom_kill "),
            Kind::Legacy(legacy) => {
                let memory = legacy.directory(Controller::Memory);
                memory.map_or(0, |memory| count(memory.join("memory.oom_control"), "oom_kill "))
            }
        }
    }

    /// How many processes and threads inside the kernel has refused.
    #[must_use]
    pub fn refused_processes(&self) -> u64 {
        let directory = match &self.kind {
            Kind::Unified(unified) => Some(unified.sandbox()),
            Kind::Legacy(legacy) => legacy.directory(Controller::Pids),
        };
        directory.map_or(0, |directory| count(directory.join("pids.events"), "max "))
    }

    /// Lets what is frozen go on, where it could not be killed otherwise.
    pub fn thaw(&self) {
        if let Kind::Legacy(legacy) = &self.kind {
            legacy.thaw();
        }
    }

    /// Removes the directories once every process in them is gone.
    pub fn remove(&self) -> io::Result<()> {
        match &self.kind {
            Kind::Unified(unified) => unified.remove(),
            Kind::Legacy(legacy) => remove_directories(&legacy.directories()),
        }
    }
}

/// A number in a file of the kernel's, by the word before it; zero where it is not told.
fn count(path: PathBuf, word: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    number.unwrap_or(0)
}

/// Whether a directory is one that we have made.
fn is_ours(directory: &Path) -> bool {
    let named = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    named && directory.starts_with("/sys/fs/cgroup")
}

/// Lets what is frozen in these directories go on, so that it can be killed.
pub fn thaw_directories(directories: &[PathBuf]) {
    for directory in directories.iter().filter(|path| is_ours(path) && freezer::is_in(path)) {
        // What is gone by now is not frozen either.
        let _ = freezer::thaw(directory);
    }
}

/// Removes cgroup directories that a keeper wrote down, the innermost first. Only names of ours are touched.
pub fn remove_directories(directories: &[PathBuf]) -> io::Result<()> {
    for directory in directories.iter().rev().filter(|path| is_ours(path)) {
        if leaf::is_leaf(directory) {
            leaf::dissolve(directory)?;
        } else {
            remove_directory(directory)?;
        }
    }
    Ok(())
}

fn remove_directory(directory: &Path) -> io::Result<()> {
    once_empty(|| match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if is_busy(&error) => {
            kill_all(directory);
            Err(error)
        }
        removed => removed,
    })
}

/// A process that has just ended may still be counted for a moment, so this tries again for about two seconds.
fn once_empty(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for attempt in 1..60 {
        match remove() {
            Err(error) if is_busy(&error) => {
                std::thread::sleep(std::time::Duration::from_millis(attempt));
            }
            removed => return removed,
        }
    }
    remove()
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

/// Kills what is in a cgroup; on v1, which cannot do that by itself, one by one.
fn kill_all(directory: &Path) {
    if fs::write(directory.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    // A process of another pid namespace is listed as 0, which no process is.
    for pid in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Writes down in the report that `limits` hold.
fn report_limit(report: &mut Report, controller: Controller, limits: &Limits, version: &str) {
    match controller {
        Controller::Memory => {
            report.given(Wall::MemoryLimit, format!("{} by cgroup {version}", limits.memory))
        }
        Controller::Cpu => report.given(Wall::CpuLimit, format!("{} by cgroup {version}", limits.cpus)),
        Controller::Pids => report.given(Wall::PidsLimit, format!("{} by cgroup {version}", limits.pids)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_tried_again_and_nothing_else_is() {
        let mut answers = vec![Ok(()), Err(libc::EBUSY), Err(libc::EBUSY)];
        let mut next = || answers.pop().unwrap().map_err(io::Error::from_raw_os_error);
        once_empty(&mut next).unwrap();
        let mut asked = 0;
        let refused = once_empty(|| {
            asked += 1;
            Err(io::Error::from_raw_os_error(libc::EACCES))
        });
        assert_eq!((refused.unwrap_err().raw_os_error(), asked), (Some(libc::EACCES), 1));
    }
}
