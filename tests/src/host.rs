//! Processes as the host sees them in /proc.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A process of the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProcess {
    /// Its id on the host.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// The letter of its state: `Z` is a zombie.
    pub state: char,
    /// The name that the kernel has for it.
    pub name: String,
    /// Its arguments; empty for a zombie.
    pub arguments: Vec<String>,
}

/// Every process of the host's.
#[must_use]
pub fn host_processes() -> Vec<HostProcess> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| HostProcess::read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

impl HostProcess {
    /// Reads one; none if it is gone.
    #[must_use]
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let name = before.split_once('(')?.1.to_owned();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut arguments: Vec<String> = arguments.collect();
        arguments.pop();
        Some(Self { pid, parent, state, name, arguments })
    }

    /// A file of the process in /proc.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    /// The host's user id that it has; none if it is gone.
    #[must_use]
    pub fn uid(&self) -> Option<u32> {
        let status = fs::read_to_string(self.file("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok())
    }

    /// The number of the system call that it waits in; none while it runs.
    #[must_use]
    pub fn syscall(&self) -> Option<i64> {
        fs::read_to_string(self.file("syscall")).ok()?.split(' ').next()?.parse().ok()
    }

    /// The device and number of the file that it runs.
    #[must_use]
    pub fn program(&self) -> Option<(u64, u64)> {
        fs::metadata(self.file("exe")).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// Its namespaces, such as `net:[4026531840]`.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.file("ns")) else { return Vec::new() };
        let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let mut names: Vec<String> = links.map(|link| link.display().to_string()).collect();
        names.sort();
        names.dedup();
        names
    }
}
