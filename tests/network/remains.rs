//! Nothing is left of a network that has gone, and nothing of the machine's own is touched while it is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use harness::{HostProcess, Internet, alone, host_processes, is_root, together};

/// What of the machine's own must stay as it is: the devices, the mounts, the names of namespaces and two files.
fn machine() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let names = |path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let names: BTreeSet<_> = entries.map(|entry| entry.file_name()).collect();
        format!("{names:?}")
    };
    // Others may mount something elsewhere at the same time.
    let mounts = read("/proc/self/mountinfo");
    let mounts = mounts.lines().filter(|line| line.contains(" /etc/") || line.contains("agentbox-internet"));
    let files = ["/etc/resolv.conf", "/etc/hosts", "/proc/net/route"].map(read);
    let files = files.into_iter().chain(["/sys/class/net", "/run/netns"].map(names));
    files.chain(mounts.map(str::to_owned)).collect()
}

/// The processes that are in one of these namespaces.
fn holders(namespaces: &BTreeSet<String>) -> Vec<HostProcess> {
    let is_in = |it: &HostProcess| it.namespaces().iter().any(|namespace| namespaces.contains(namespace));
    host_processes().into_iter().filter(is_in).collect()
}

/// The namespaces of a network's host that are not our own.
fn namespaces(internet: &Internet) -> BTreeSet<String> {
    let of = |pid: i32| HostProcess::read(pid).unwrap().namespaces();
    let own = of(std::process::id().cast_signed());
    of(internet.host_pid()).into_iter().filter(|namespace| !own.contains(namespace)).collect()
}

#[test]
fn nothing_is_left_and_nothing_is_touched() {
    let _turn = alone();
    if !is_root("make network namespaces") {
        return;
    }
    let before = machine();
    let internet = Internet::new();
    assert_eq!(machine(), before);
    let theirs = namespaces(&internet);
    assert_eq!(theirs.len(), 2, "{theirs:?}");
    assert_eq!(holders(&theirs).len(), 1);
    let directory: PathBuf = internet.directory().to_owned();
    let processes = || {
        let path = directory.display().to_string();
        host_processes().into_iter().filter(|it| it.arguments.contains(&path)).count()
    };
    assert_eq!(processes(), 2);
    internet.run_in_host(["curl", "--silent", "--max-time", "10", "http://four.test/"]).assert_success();
    drop(internet);
    assert_eq!(machine(), before);
    assert_eq!(processes(), 0);
    assert_eq!(holders(&theirs), Vec::new());
    assert!(!directory.exists());
}

#[test]
fn a_network_sees_nothing_of_another() {
    let _turn = together();
    if !is_root("make network namespaces") {
        return;
    }
    let (one, other) = (Internet::new(), Internet::new());
    let argv = ["curl", "--silent", "--max-time", "10", "http://four.test/"];
    one.run_in_host(argv).assert_success();
    assert!(!one.seen().is_nothing());
    assert!(other.seen().is_nothing(), "{:#?}", other.seen());
}

#[test]
fn the_host_has_files_of_its_own() {
    let _turn = together();
    if !is_root("make network namespaces") {
        return;
    }
    let internet = Internet::new();
    let read = |path: &str| internet.run_in_host(["cat", path]).assert_success().stdout();
    assert_eq!(read("/etc/resolv.conf"), "nameserver 192.0.2.53\n");
    assert!(read("/etc/hosts").starts_with("127.0.0.1 localhost\n"));
}
