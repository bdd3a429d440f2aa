//! The cgroups of a sandbox that runs, as any process of its owner's finds them: by the note that the keeper wrote
//! before it made them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::{Limits, Report};

use super::{Controller, freezer, is_ours, leaf, report_limit, setting};

/// The cgroups of a sandbox that runs.
#[derive(Clone, Debug)]
pub struct LivingCgroup {
    directories: Vec<PathBuf>,
}

/// What a sandbox uses, as far as its cgroups count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupUsage {
    /// Memory in bytes, without what the kernel would give back at once.
    pub memory: Option<u64>,
    /// Processor time since it was made.
    pub cpu: Option<Duration>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl LivingCgroup {
    /// Those of a note that are there. None where the sandbox has none.
    #[must_use]
    pub fn of(note: &[PathBuf]) -> Option<Self> {
        let there = |path: &&PathBuf| is_ours(path) && !leaf::is_leaf(path) && path.exists();
        let mut directories: Vec<PathBuf> = note.iter().filter(there).cloned().collect();
        directories.dedup();
        (!directories.is_empty()).then_some(Self { directories })
    }

    fn find(&self, controller: Controller) -> Option<&Path> {
        self.directories.iter().map(PathBuf::as_path).find(|directory| setting::has(directory, controller))
    }

    fn freezer(&self) -> Option<&Path> {
        self.directories.iter().map(PathBuf::as_path).find(|directory| freezer::is_in(directory))
    }

    /// Whether this is limited by a cgroup.
    #[must_use]
    pub fn limits(&self, controller: Controller) -> bool {
        self.find(controller).is_some()
    }

    /// Sets one limit anew.
    pub fn set(&self, controller: Controller, limits: &Limits) -> io::Result<()> {
        let directory = self.find(controller).ok_or(io::ErrorKind::Unsupported)?;
        setting::set(directory, controller, limits)
    }

    /// Writes down in a report which limits hold now.
    pub fn report(&self, limits: &Limits, report: &mut Report) {
        for controller in Controller::ALL {
            if let Some(directory) = self.find(controller) {
                let version = if directory.join("cgroup.controllers").exists() { "v2" } else { "v1" };
                report_limit(report, controller, limits, version);
            }
        }
    }

    /// Whether it can be frozen.
    #[must_use]
    pub fn can_freeze(&self) -> bool {
        self.freezer().is_some()
    }

    /// Stops everything where it stands.
    pub fn freeze(&self) -> io::Result<()> {
        freezer::freeze(self.freezer().ok_or(io::ErrorKind::Unsupported)?)
    }

    /// Lets everything go on.
    pub fn thaw(&self) -> io::Result<()> {
        freezer::thaw(self.freezer().ok_or(io::ErrorKind::Unsupported)?)
    }

    /// What it uses.
    #[must_use]
    pub fn usage(&self) -> CgroupUsage {
        let in_any = |file: &str| self.directories.iter().find_map(|directory| text(&directory.join(file)));
        let number = |file: &str| in_any(file)?.trim().parse::<u64>().ok();
        let line = |file: &str, key: &str| field(&in_any(file)?, key);
        let memory = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
        // What was read from files and not used since is the kernel's to give back, as everybody counts.
        let given_back = line("memory.stat", "inactive_file").unwrap_or(0);
        CgroupUsage {
            memory: memory.map(|bytes| bytes.saturating_sub(given_back)),
            cpu: line("cpu.stat", "usage_usec")
                .map(Duration::from_micros)
                .or_else(|| number("cpuacct.usage").map(Duration::from_nanos)),
            pids: number("pids.current"),
        }
    }
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number behind a key, one of which is on each line.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_whole_word() {
        let text = "inactive_file_x 1\ninactive_file 20\n";
        assert_eq!(field(text, "inactive_file"), Some(20));
        assert_eq!(field(text, "inactive"), None);
    }

    #[test]
    fn nothing_but_directories_of_ours_is_taken_for_a_sandboxs() {
        assert!(LivingCgroup::of(&["/sys/fs/cgroup".into(), "/tmp".into()]).is_none());
        assert!(LivingCgroup::of(&["/sys/fs/cgroup/agentbox-none/..".into()]).is_none());
    }
}
