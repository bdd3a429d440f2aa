//! What of agentbox is on the host: processes, namespaces, mounts, cgroups and files. Two counts compared show
//! what a test left behind. Sandboxes of other programs that run at the same time are told apart where they can be.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::{Caller, HostProcess, binaries, host_processes};

/// What there is of agentbox on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeakCount {
    /// Processes that run one of the programs under test.
    pub processes: BTreeSet<String>,
    /// The namespaces that those hold, beside our own.
    pub namespaces: BTreeSet<String>,
    /// Mounts of ours in the host's own namespace.
    pub mounts: BTreeSet<String>,
    /// Directories `agentbox-*` in any cgroup hierarchy that belong to no living sandbox.
    pub cgroups: BTreeSet<PathBuf>,
    /// Runtime directories of sandboxes whose keeper is gone.
    pub directories: BTreeSet<PathBuf>,
}

impl LeakCount {
    /// What is here now and was not then, one line each.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.processes.difference(&before.processes).map(|it| format!("process {it}")));
        lines.extend(self.namespaces.difference(&before.namespaces).map(|it| format!("namespace {it}")));
        lines.extend(self.mounts.difference(&before.mounts).map(|it| format!("mount {it}")));
        lines.extend(self.cgroups.difference(&before.cgroups).map(|it| format!("cgroup {}", it.display())));
        lines.extend(
            self.directories.difference(&before.directories).map(|it| format!("files {}", it.display())),
        );
        lines
    }

    /// Fails the test if anything is left that was not there at `self`.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        let left = leaks().since(self);
        assert!(left.is_empty(), "left behind: {left:#?}");
    }

    /// Fails the test unless all that was not there at `self` goes within two seconds. `kind` picks what counts,
    /// by the first word of its line.
    #[track_caller]
    pub fn assert_goes(&self, kind: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            let left: Vec<_> = leaks()
                .since(self)
                .into_iter()
                .filter(|line| kind(line.split(' ').next().unwrap_or("")))
                .collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Counts now.
#[must_use]
pub fn leaks() -> LeakCount {
    let sandboxes: Vec<PathBuf> = runtime_directories().iter().flat_map(|path| entries(path)).collect();
    let (dead, living): (Vec<_>, Vec<_>) = sandboxes.into_iter().partition(|path| is_dead(path));
    let names: BTreeSet<_> =
        living.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    let is_living = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        names.iter().any(|id| name.contains(id.as_str()))
    };
    let mut found = LeakCount {
        mounts: mounts(),
        cgroups: cgroups(Path::new("/sys/fs/cgroup"), 0)
            .into_iter()
            .filter(|path| !is_living(path))
            .collect(),
        directories: dead.into_iter().collect(),
        ..LeakCount::default()
    };
    let ours = programs();
    let own = HostProcess::read(std::process::id().cast_signed()).map(|it| it.namespaces());
    let own = own.unwrap_or_default();
    for process in host_processes() {
        let runs_ours = process.program().is_some_and(|program| ours.contains(&program));
        let zombie_of_ours = process.name.starts_with("agentbox") && lingers(&process);
        if runs_ours || zombie_of_ours {
            let namespaces = process.namespaces();
            found.namespaces.extend(namespaces.into_iter().filter(|namespace| !own.contains(namespace)));
            found.processes.insert(format!("{} {} {:?}", process.pid, process.name, process.arguments));
        }
    }
    found
}

/// A zombie that nobody reaps. It runs no file any more, so that those of other programs' sandboxes look the same, but
/// theirs are on their way.
fn lingers(process: &HostProcess) -> bool {
    let deadline = Instant::now() + Duration::from_millis(300);
    let mut now = Some(process.clone());
    while now.is_some_and(|now| now.state == 'Z' && now.name == process.name) {
        if Instant::now() > deadline {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
        now = HostProcess::read(process.pid);
    }
    false
}

/// The files of the programs under test, the probe included.
fn programs() -> BTreeSet<(u64, u64)> {
    let directory = binaries().directory();
    let files =
        ["shipped/agentbox", "shipped/agentbox-init", "weakened/agentbox", "weakened/agentbox-init", "probe"];
    let metadata = files.iter().filter_map(|file| fs::metadata(directory.join(file)).ok());
    metadata.map(|metadata| (metadata.dev(), metadata.ino())).collect()
}

fn runtime_directories() -> Vec<PathBuf> {
    let available = Caller::ALL.into_iter().filter(|caller| caller.is_available());
    available
        .map(|caller| match caller {
            Caller::Root => PathBuf::from("/run/agentbox/sandboxes"),
            _ => PathBuf::from(format!("/tmp/agentbox-{}/sandboxes", caller.uid())),
        })
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A sandbox whose lock can be taken has no keeper any more.
fn is_dead(runtime: &Path) -> bool {
    let lock = File::open(runtime);
    runtime.exists() && lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_ok())
}

fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter(|line| line.contains("agentbox")).map(str::to_owned).collect()
}

fn cgroups(directory: &Path, depth: usize) -> Vec<PathBuf> {
    const DEEPEST: usize = 8;
    if depth > DEEPEST {
        return Vec::new();
    }
    let mut found = Vec::new();
    for path in entries(directory).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agentbox-")) {
            found.push(path.clone());
        }
        found.extend(cgroups(&path, depth + 1));
    }
    found
}
