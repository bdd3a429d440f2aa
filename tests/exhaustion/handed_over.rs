//! Exhaustion: 52 and 53 for an ordinary user to whom a part of the v1 hierarchies was handed over. What
//! systemd delegates on v2 is tested in the virtual machine.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Agentbox, Caller, callers_alone, leaks};
use rustix::process::geteuid;

use crate::memory;

/// A directory of the caller's in each hierarchy; they go when this is dropped.
struct Subtree {
    directories: Vec<PathBuf>,
}

impl Subtree {
    fn hand_over(caller: Caller) -> Self {
        let name = format!("handed-over-{}-{caller:?}", std::process::id());
        let directories: Vec<PathBuf> =
            ["memory", "cpu", "pids"].map(|it| Path::new("/sys/fs/cgroup").join(it).join(&name)).into();
        for directory in &directories {
            fs::create_dir(directory).unwrap();
            caller.own(directory);
            caller.own(&directory.join("cgroup.procs"));
        }
        Self { directories }
    }

    /// Agentbox, started by a process that stands there.
    fn sandbox(&self, caller: Caller) -> Agentbox {
        let enter: Vec<String> =
            self.directories.iter().map(|it| format!("echo $$ > {}/cgroup.procs", it.display())).collect();
        let script = format!("{} && exec \"$@\"", enter.join(" && "));
        Agentbox::shipped(caller).behind(["/bin/sh", "-c", &script, "sh"])
    }
}

impl Drop for Subtree {
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

callers_alone!(exhaustion_53_limits_in_what_was_handed_over, |caller| {
    if caller == Caller::Root || !geteuid().is_root() || !Path::new("/sys/fs/cgroup/memory").is_dir() {
        println!("skipped: needs root, who hands a part of cgroup v1 over to somebody else");
        return;
    }
    let before = leaks();
    let subtree = Subtree::hand_over(caller);
    let finished = subtree.sandbox(caller).options(["--report"]).run(["/bin/true"]);
    let said = finished.assert_success().stderr();
    for wall in ["memory-limit", "cpu-limit", "pids-limit"] {
        let is_given = |line: &str| line.starts_with("given") && line.split_whitespace().nth(1) == Some(wall);
        assert!(said.lines().any(is_given), "no {wall} in {said}");
    }
    memory::is_bounded(subtree.sandbox(caller)).unwrap();
    let forks = "my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 60; exit } $n++ } print $n;";
    let finished = subtree.sandbox(caller).options(["--pids", "64"]).run(["/usr/bin/perl", "-e", forks]);
    let count: usize = finished.assert_success().stdout().parse().unwrap();
    let most = 64 + crate::processes::runtime_threads();
    assert!((32..most).contains(&count), "{count} processes with a limit of 64");
    before.assert_goes(|_| true);
    for directory in &subtree.directories {
        let left = fs::read_dir(directory).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
        assert_eq!(left, 0, "cgroups are left in {}", directory.display());
    }
});
