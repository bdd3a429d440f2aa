//! What sandboxes could leave behind on the machine, counted by kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use engine::Directories;

use crate::sandbox::Sandbox;

const CGROUPS: &str = "/sys/fs/cgroup";
const PREFIX: &str = "agentbox-";

/// How many there are of each kind.
#[derive(Debug)]
pub(crate) struct Remains(Vec<(&'static str, usize)>);

impl Remains {
    pub(crate) fn count() -> Result<Self> {
        let processes: Vec<PathBuf> = fs::read_dir("/proc")?.flatten().map(|entry| entry.path()).collect();
        let ours = |path: &&PathBuf| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("agentbox"))
        };
        let mut namespaces = BTreeSet::new();
        for path in &processes {
            for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
                namespaces.extend(fs::read_link(path.join("ns").join(kind)).ok());
            }
        }
        Ok(Self(vec![
            ("processes", processes.iter().filter(ours).count()),
            ("mounts", fs::read_to_string("/proc/self/mountinfo")?.lines().count()),
            ("cgroups", cgroups().len()),
            ("namespaces", namespaces.len()),
            ("files", count_below(&Directories::open()?.sandboxes())),
        ]))
    }

    /// Counts something else, too.
    pub(crate) fn and(mut self, name: &'static str, count: usize) -> Self {
        self.0.push((name, count));
        self
    }

    pub(crate) fn since(&self, before: &Self) -> Growth {
        let pairs = self.0.iter().zip(&before.0);
        Growth(pairs.map(|((name, after), (_, before))| (*name, *after as i64 - *before as i64)).collect())
    }
}

/// How many more there are of each kind.
#[derive(Debug)]
pub(crate) struct Growth(Vec<(&'static str, i64)>);

impl Growth {
    /// Something else that has become more.
    pub(crate) fn and(mut self, name: &'static str, more: i64) -> Self {
        self.0.push((name, more));
        self
    }

    /// Each kind by itself: fewer of one must not make up for more of another.
    pub(crate) fn sum(&self) -> i64 {
        self.0.iter().map(|(_, more)| (*more).max(0)).sum()
    }

    pub(crate) fn shown(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, more)| ((*name).to_owned(), format!("{more:+}"))).collect()
    }
}

/// How many files and directories there are below one.
pub(crate) fn count_below(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let each = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + count_below(&entry.path()),
        _ => 1,
    });
    each.sum()
}

/// The cgroups of sandboxes, in all hierarchies.
fn cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from(CGROUPS)];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                    found.push(entry.path());
                }
                waiting.push(entry.path());
            }
        }
    }
    found
}

/// The bytes that are charged to the cgroups of these sandboxes; none where none is.
pub(crate) fn memory_of_cgroups(sandboxes: &[Sandbox]) -> Option<u64> {
    let names: BTreeSet<String> = sandboxes.iter().map(|sandbox| format!("{PREFIX}{}", sandbox.id)).collect();
    let is_theirs = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(name))
    };
    let charged = |path: PathBuf| {
        let files = ["memory.current", "memory.usage_in_bytes"].map(|name| path.join(name));
        files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
    };
    cgroups().into_iter().filter(is_theirs).filter_map(charged).reduce(|sum, bytes| sum + bytes)
}
