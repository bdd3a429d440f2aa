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
    /// Whose processes and directories these are; everybody's if of nobody in particular.
    pub of: Option<Caller>,
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

    /// Fails the test if anything is left that was not there at `self`, once what is about to go has gone.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        self.assert_goes(|_| true);
    }

    /// Fails the test unless all that was not there at `self` goes soon. `kind` picks what counts, by the first word of its
    /// line.
    #[track_caller]
    pub fn assert_goes(&self, kind: impl Fn(&str) -> bool) {
        let left = self.wait(|line| kind(line.split(' ').next().unwrap_or("")));
        assert!(left.is_empty(), "left behind: {left:#?}");
    }

    /// Waits until all that was not there at `self`, and counts, has gone: what has not, one line each.
    ///
    /// As long as a process of ours lives, more may come. Once none does, nothing of ours does: what is new then is of other
    /// test programs that run at the same time, and what goes by itself was never left.
    #[must_use]
    pub fn wait(&self, counts: impl Fn(&str) -> bool) -> Vec<String> {
        let look = || -> Vec<String> {
            count(self.of).since(self).into_iter().filter(|line| counts(line)).collect()
        };
        let deadline = Instant::now() + PATIENCE;
        let mut left = look();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            let now = look();
            let lives = left.iter().chain(&now).any(|line| line.starts_with("process "));
            if lives {
                left = now;
            } else {
                left.retain(|line| now.contains(line));
            }
        }
        left
    }
}

/// Counts now what there is of anybody.
#[must_use]
pub fn leaks() -> LeakCount {
    count(None)
}

/// Counts now what there is of one caller, while tests of others run.
#[must_use]
pub fn leaks_of(caller: Caller) -> LeakCount {
    count(Some(caller))
}

/// What other programs' sandboxes have is told apart from what is left: theirs live, or are on their way.
fn count(of: Option<Caller>) -> LeakCount {
    // In this order: what a sandbox had that ends meanwhile is gone once its directory is.
    let cgroups = cgroups();
    let own = of.map(runtime_directory);
    let is_of = |path: &Path| own.as_deref().is_none_or(|own| path.parent() == Some(own));
    let sandboxes: Vec<PathBuf> = runtime_directories().iter().flat_map(|path| entries(path)).collect();
    let (dead, living): (Vec<_>, Vec<_>) = sandboxes.into_iter().partition(|path| is_dead(path));
    // What another caller's command has yet to clean up is not for this one to count.
    let others = living.iter().chain(dead.iter().filter(|path| !is_of(path)));
    let names: BTreeSet<_> =
        others.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        !names.iter().any(|id| name.contains(id.as_str())) && path.exists()
    };
    let mut found = LeakCount {
        mounts: mounts(),
        cgroups: cgroups.into_iter().filter(is_left).collect(),
        directories: dead.into_iter().filter(|path| is_of(path)).collect(),
        of,
        ..LeakCount::default()
    };
    let ours = programs();
    let own = HostProcess::read(std::process::id().cast_signed()).map(|it| it.namespaces());
    let own = own.unwrap_or_default();
    let is_theirs =
        |process: &HostProcess| of.is_none_or(|caller| process.uid().is_some_and(|uid| caller.has_uid(uid)));
    for process in host_processes() {
        let runs_ours = process.program().is_some_and(|program| ours.contains(&program));
        let is_agentbox = process.name.starts_with("agentbox");
        if (runs_ours || is_agentbox) && is_theirs(&process) && (runs_ours || lingers(&process)) {
            let namespaces = process.namespaces();
            found.namespaces.extend(namespaces.into_iter().filter(|namespace| !own.contains(namespace)));
            found.processes.insert(format!("{} {} {:?}", process.pid, process.name, process.arguments));
        }
    }
    found
}

/// How long the kernel and a busy machine may take to take a sandbox apart.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long something may be on its way.
const MOMENT: Duration = Duration::from_millis(300);

/// A zombie that nobody reaps, and that is no other program's. It runs no file any more by which it could be told.
fn lingers(process: &HostProcess) -> bool {
    let deadline = Instant::now() + MOMENT;
    let mut now = Some(process.clone());
    while now.as_ref().is_some_and(|now| now.state == 'Z' && now.name == process.name && is_ours(now)) {
        if Instant::now() > deadline {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
        now = HostProcess::read(process.pid);
    }
    false
}

/// Whether a process descends from this one. A dead one whose parents are gone is the host's own init's, which frees its
/// number whenever it gets to it; nobody can tell whose it was, and nothing of it is left but the number.
fn is_ours(process: &HostProcess) -> bool {
    let own = std::process::id().cast_signed();
    let mut parent = process.parent;
    while parent > 1 && parent != own {
        parent = HostProcess::read(parent).map_or(1, |parent| parent.parent);
    }
    parent == own
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
    available.map(runtime_directory).collect()
}

fn runtime_directory(caller: Caller) -> PathBuf {
    match caller {
        Caller::Root => PathBuf::from("/run/agentbox/sandboxes"),
        _ => PathBuf::from(format!("/tmp/agentbox-{}/sandboxes", caller.uid())),
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A sandbox whose lock can be taken has no keeper any more, unless it is just being made or removed.
fn is_dead(runtime: &Path) -> bool {
    let is_free = || {
        let lock = File::open(runtime);
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_ok())
    };
    is_free() && {
        std::thread::sleep(MOMENT / 10);
        is_free() && runtime.exists()
    }
}

fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter(|line| line.contains("agentbox")).map(str::to_owned).collect()
}

/// Every directory `agentbox-*` in any cgroup hierarchy.
#[must_use]
pub fn cgroups() -> Vec<PathBuf> {
    cgroups_below(Path::new("/sys/fs/cgroup"), 0)
}

fn cgroups_below(directory: &Path, depth: usize) -> Vec<PathBuf> {
    const DEEPEST: usize = 8;
    if depth > DEEPEST {
        return Vec::new();
    }
    let mut found = Vec::new();
    for path in entries(directory).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agentbox-")) {
            found.push(path.clone());
        }
        found.extend(cgroups_below(&path, depth + 1));
    }
    found
}
