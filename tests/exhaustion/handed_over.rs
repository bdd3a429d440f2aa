//! Exhaustion: 52 and 53 for an ordinary user to whom a part of the v1 hierarchies was handed over. What
//! systemd delegates on v2 is tested in the virtual machine.

use std::fs;
use std::path::Path;

use harness::{Agentbox, Subtree, callers_alone, leaks};
use rustix::process::geteuid;

use crate::memory;

callers_alone!(exhaustion_53_limits_in_what_was_handed_over, |caller| {
    if caller == Caller::Root || !geteuid().is_root() || !Path::new("/sys/fs/cgroup/memory").is_dir() {
        println!("skipped: needs root, who hands a part of cgroup v1 over to somebody else");
        return;
    }
    let before = leaks();
    let subtree = Subtree::hand_over(caller);
    let sandbox = || Agentbox::shipped(caller).behind(subtree.prefix());
    let finished = sandbox().options(["--report"]).run(["/bin/true"]);
    let said = finished.assert_success().stderr();
    for wall in ["memory-limit", "cpu-limit", "pids-limit"] {
        let is_given = |line: &str| line.starts_with("given") && line.split_whitespace().nth(1) == Some(wall);
        assert!(said.lines().any(is_given), "no {wall} in {said}");
    }
    memory::is_bounded(sandbox()).unwrap();
    let forks = "my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 60; exit } $n++ } print $n;";
    let finished = sandbox().options(["--pids", "64"]).run(["/usr/bin/perl", "-e", forks]);
    let count: usize = finished.assert_success().stdout().parse().unwrap();
    let most = 64 + crate::processes::runtime_threads();
    assert!((32..most).contains(&count), "{count} processes with a limit of 64");
    before.assert_goes(|_| true);
    for directory in subtree.directories() {
        let left = fs::read_dir(directory).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
        assert_eq!(left, 0, "cgroups are left in {}", directory.display());
    }
});
