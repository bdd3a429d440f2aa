//! What of a place is on the host that belongs to no sandbox: at once no process, and after the next command no file
//! and no cgroup.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use harness::{HostProcess, cgroups, host_processes};
use rustix::fs::{FlockOperation, flock};

use crate::place::Place;

/// The kernel takes namespaces apart in its own time.
const PATIENCE: Duration = Duration::from_secs(10);

/// What there may be of a sandbox. A file that is being written is its keeper's, and the next one writes it over.
const FILES: [&str; 6] = ["outputs", "spec.json", "status.json", "status.json.new", "unclaimed", "workspace"];

impl Place {
    /// The processes of the place's programs and of its sandboxes. The dead run nothing and are not among them.
    pub(crate) fn processes(&self) -> Vec<HostProcess> {
        let number =
            |name: &str| fs::metadata(self.path(name)).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let programs = [number("agentbox"), number("agentbox-init")];
        let token = self.token();
        let is_ours = |process: &HostProcess| {
            let program = process.program();
            program.is_some() && (programs.contains(&program) || has_variable(process, &token))
        };
        host_processes().into_iter().filter(is_ours).collect()
    }

    /// Fails unless every process of the place belongs to a sandbox whose keeper lives, within a moment.
    #[track_caller]
    pub(crate) fn assert_no_orphans(&self, after: &str) {
        self.wait_until_none(after, || {
            let (runtime, all) = (self.runtime(), host_processes());
            let orphans = self.processes().into_iter().filter(|process| !has_keeper(process, &all, &runtime));
            orphans.map(|process| format!("{process:?} in {:?}", process.namespaces())).collect()
        });
    }

    /// Fails unless everything of the place is gone: processes, mounts, cgroups, files. Records stay.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, after: &str) {
        self.wait_until_none(after, || {
            let mut left: Vec<String> = self.processes().iter().map(|it| format!("{it:?}")).collect();
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            let own = self.path("").display().to_string();
            left.extend(mounts.lines().filter(|line| line.contains(&own)).map(str::to_owned));
            left.extend(self.strays(&[], &self.recorded()));
            left
        });
    }

    /// Fails unless a command that has just been given removed what belongs to no sandbox. `dead` was there before it.
    #[track_caller]
    pub(crate) fn assert_no_strays(&self, dead: &[String], after: &str) {
        let listed: Vec<String> =
            self.list().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
        let strays = self.strays(&listed, dead);
        assert!(strays.is_empty(), "{after}: left behind: {strays:#?}");
    }

    /// The ids of runtime directories that nobody has locked.
    pub(crate) fn dead(&self) -> Vec<String> {
        let ids = names(&self.runtime()).into_iter();
        ids.filter(|id| is_free(&self.runtime().join(id))).collect()
    }

    /// Files that belong to none of these sandboxes, and what the dead have left.
    fn strays(&self, listed: &[String], dead: &[String]) -> Vec<String> {
        let mut strays = Vec::new();
        for id in names(&self.kept()) {
            if !listed.contains(&id) {
                strays.push(format!("files {id}"));
                continue;
            }
            let within = names(&self.kept().join(&id)).into_iter();
            strays
                .extend(within.filter(|name| !FILES.contains(&name.as_str())).map(|it| format!("{id}/{it}")));
        }
        let runtime = |id: &str| self.runtime().join(id);
        strays.extend(dead.iter().filter(|id| is_free(&runtime(id))).map(|id| format!("runtime {id}")));
        let is_left = |path: &PathBuf| !self.cgroups_before.contains(path) && is_nobodys(path);
        strays.extend(cgroups().into_iter().filter(is_left).map(|path| format!("cgroup {}", path.display())));
        strays
    }

    #[track_caller]
    fn wait_until_none(&self, after: &str, find: impl Fn() -> Vec<String>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = find();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{after}: left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Fails unless every record is whole. Those that are known to be, and will not change, are not looked at again.
    #[track_caller]
    pub(crate) fn assert_records(&self, known: &mut BTreeSet<String>, after: &str) {
        for id in self.recorded() {
            if !known.contains(&id) {
                let said = self.try_say(&["audit", "--verify", &id]);
                assert_eq!(said.code, 0, "{after}: {}", said.stderr());
            }
            if !self.kept().join(&id).exists() {
                known.insert(id);
            }
        }
    }
}

fn has_variable(process: &HostProcess, variable: &str) -> bool {
    let environment = fs::read(process.file("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|each| each == variable.as_bytes())
}

/// Whether a cgroup belongs to no sandbox, however often one looks: one of others that is started anew has the same name,
/// and for a moment no directory.
fn is_nobodys(cgroup: &Path) -> bool {
    (0..5).all(|_| {
        let is_left = !has_runtime(cgroup) && cgroup.exists();
        if is_left {
            std::thread::sleep(Duration::from_millis(20));
        }
        is_left
    })
}

/// Whether a cgroup belongs to a sandbox, of whomever: each has a runtime directory from before it to after it.
fn has_runtime(cgroup: &Path) -> bool {
    let name = cgroup.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let below = |directory: &str, rest: &str| {
        let callers = names(Path::new(directory)).into_iter();
        callers.map(|caller| Path::new(directory).join(caller).join(rest)).collect::<Vec<_>>()
    };
    let everywhere = [
        vec![PathBuf::from("/run/agentbox/sandboxes")],
        below("/tmp", "sandboxes"),
        below("/tmp", "run/agentbox/sandboxes"),
        below("/run/user", "agentbox/sandboxes"),
    ];
    everywhere.iter().flatten().flat_map(|directory| names(directory)).any(|id| name.contains(&id))
}

/// Whether a process, or one that it comes from, is a keeper that holds the directory of a sandbox.
fn has_keeper(process: &HostProcess, all: &[HostProcess], runtime: &Path) -> bool {
    let mut next = Some(process);
    while let Some(process) = next {
        if process.name == "agentbox-keeper" && holds_directory(process, runtime) {
            return true;
        }
        next = all.iter().find(|other| other.pid == process.parent);
    }
    false
}

fn holds_directory(keeper: &HostProcess, runtime: &Path) -> bool {
    let descriptors = fs::read_dir(keeper.file("fd")).into_iter().flatten().flatten();
    let mut paths = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    paths.any(|path| path.parent() == Some(runtime) && path.exists())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether a directory is there and nobody has locked it.
fn is_free(runtime: &Path) -> bool {
    let Ok(directory) = File::open(runtime) else { return false };
    flock(&directory, FlockOperation::NonBlockingLockShared).is_ok() && runtime.exists()
}
