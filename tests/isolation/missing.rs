//! Kernel: 22, its first half. What a machine can lack is taken away in turn: a wall that is never optional is
//! missed with a refusal, any other with a report, or with a refusal where isolation is strict.

use harness::{Agentbox, LeakCount, binaries, callers_apart, is_root, leaks_of};
use rustix::process::geteuid;

/// The words that put a filter in front: `call=ERRNO`, separated by commas.
fn filtered(sandbox: Agentbox, answers: &str) -> Agentbox {
    sandbox.behind([&binaries().probe().display().to_string(), "outer", answers, "--"])
}

/// Refused in the form that a person reads, and nothing is left of it.
#[track_caller]
fn assert_refused(before: &LeakCount, without: &str, sandbox: Agentbox) {
    let finished = sandbox.run(["echo", "it ran"]);
    let said = finished.stderr();
    assert_eq!(finished.code, 125, "without {without}: {} {said}", finished.stdout());
    assert_eq!(finished.stdout(), "", "without {without}");
    for part in ["error: ", "cause: ", "hint: "] {
        assert!(said.lines().any(|line| line.starts_with(part)), "without {without} no {part} in: {said}");
    }
    // No other command of ours runs meanwhile that would clean up.
    before.assert_goes(|_| true);
}

callers_apart!(kernel_22_no_sandbox_without_its_calls, |caller| {
    let mut calls = vec![
        "clone3=ENOSYS",
        "clone3=EPERM",
        "mount=EPERM",
        "mount_setattr=ENOSYS",
        "pivot_root=EPERM",
        "umount2=EPERM",
        "seccomp=ENOSYS",
        "seccomp=EPERM",
        "close_range=ENOSYS",
        "sethostname=EPERM",
        "unshare=EPERM",
    ];
    // These the program that changes to the caller's user needs itself.
    if caller == Caller::Root || !geteuid().is_root() {
        calls.extend(["capset=EPERM", "prctl=EPERM"]);
    }
    if caller == Caller::Root {
        calls.extend(["setresuid=EPERM", "setgroups=EPERM"]);
    }
    let before = leaks_of(caller);
    for call in calls {
        assert_refused(&before, call, filtered(Agentbox::shipped(caller), call));
    }
});

callers_apart!(kernel_22_no_sandbox_without_its_namespaces, |caller| {
    if !is_root("make a machine without some namespaces") {
        return;
    }
    let probe = binaries().probe().display().to_string();
    let before = leaks_of(caller);
    for kind in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        let sandbox = Agentbox::shipped(caller).behind([&probe, "without", kind, "--"]);
        assert_refused(&before, kind, sandbox);
    }
});

callers_apart!(kernel_22_cgroup_namespace_taken_away, |caller| {
    if !harness::is_on(
        &[policy::Backend::Native, policy::Backend::Crun, policy::Backend::Gvisor],
        "runc does not start without cgroups to look at",
    ) {
        return;
    }
    if !is_root("make a machine without some namespaces") {
        return;
    }
    let probe = binaries().probe().display().to_string();
    assert_reported(&leaks_of(caller), "missing   cgroup-namespace", || {
        Agentbox::shipped(caller).behind([&probe, "without", "cgroup", "--"])
    });
});

/// With something reported missing: strict refuses, otherwise the command runs and the report says so.
#[track_caller]
fn assert_reported(before: &LeakCount, line: &str, sandbox: impl Fn() -> Agentbox) {
    assert_refused(before, line, sandbox().options(["--isolation", "strict"]));
    let finished = sandbox().run(["echo", "it ran"]);
    assert_eq!(finished.assert_success().stdout(), "it ran\n");
    let said = finished.stderr();
    assert!(said.lines().any(|said| said.starts_with(line)), "no '{line}' in {said}");
    before.assert_goes(|_| true);
}

callers_apart!(kernel_22_landlock_taken_away, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "its kernel has no Landlock") {
        return;
    }
    // Without a capability a filter needs no_new_privs, which takes newuidmap's powers away.
    if caller == Caller::Subordinate && !is_root("put a filter in front of newuidmap") {
        return;
    }
    let before = leaks_of(caller);
    for answer in ["landlock_create_ruleset=ENOSYS", "landlock_create_ruleset=EOPNOTSUPP"] {
        assert_reported(&before, "missing   landlock", || filtered(Agentbox::shipped(caller), answer));
    }
});

/// A shell of root's in a mount namespace of its own that changes something and goes on as the caller.
fn changed(sandbox: Agentbox, change: &str) -> Agentbox {
    let script = format!("{change} && exec \"$@\"");
    sandbox.behind([
        "/usr/bin/unshare",
        "--mount",
        "--propagation",
        "private",
        "/bin/sh",
        "-c",
        &script,
        "sh",
    ])
}

callers_apart!(kernel_22_cgroups_taken_away, |caller| {
    if !is_root("hide the cgroups") {
        return;
    }
    let before = leaks_of(caller);
    let without = || changed(Agentbox::shipped(caller), "umount --recursive --lazy /sys/fs/cgroup");
    for line in ["missing   memory-limit", "missing   cpu-limit", "weaker    pids-limit"] {
        assert_reported(&before, line, without);
    }
});

callers_apart!(kernel_22_id_range_taken_away, |caller| {
    // Root has its own span, and this user has none to begin with.
    if caller != Caller::Subordinate || !geteuid().is_root() {
        return;
    }
    let before = leaks_of(caller);
    let no_range = || changed(Agentbox::shipped(caller), "mount --bind /dev/null /etc/subuid");
    assert_reported(&before, "weaker    id-range", no_range);
    // A helper that fails is another matter than none: the range was promised.
    let broken = changed(Agentbox::shipped(caller), "mount --bind /bin/false /usr/bin/newuidmap");
    assert_refused(&before, "a working newuidmap", broken);
});

callers_apart!(kernel_22_strict_is_refused_for_what_is_missing_here, |caller| {
    let before = leaks_of(caller);
    let reported = Agentbox::shipped(caller).run(["true"]);
    let has_gaps = !reported.assert_success().stderr().is_empty();
    let strict = Agentbox::shipped(caller).options(["--isolation", "strict"]);
    if has_gaps {
        assert_refused(&before, "everything", strict);
    } else {
        strict.run(["true"]).assert_success();
    }
});

// What the owner chooses to do without is no lack of the machine's: strict isolation reports it and starts.
callers_apart!(kernel_22_strict_takes_what_the_owner_chose, |caller| {
    let tree = caller.directory();
    let direct = format!("{}:direct", tree.path().display());
    let chosen = ["--workspace", &direct];
    let strict = || Agentbox::shipped(caller).options(["--isolation", "strict"]);
    let lacks = strict().run(["true"]).code != 0;
    let finished = strict().options(chosen).run(["echo", "it ran"]);
    let told = finished.stderr();
    if lacks {
        // What the machine lacks is refused all the same, and is what is named.
        let refusal = finished.assert_refused().stderr();
        let error = refusal.lines().find(|line| line.starts_with("error: strict isolation")).unwrap();
        assert!(!error.contains("disk-limit") && !error.contains("mount-namespace"), "{refusal}");
        return;
    }
    assert_eq!(finished.assert_success().stdout(), "it ran\n");
    for wall in ["weaker    mount-namespace", "weaker    disk-limit"] {
        let line = told.lines().find(|line| line.starts_with(wall));
        assert!(line.is_some(), "no '{wall}' in {told}");
    }
    assert!(told.contains("hint: leave :direct out"), "{told}");
});

// What is written into private directories is limited by the file system that they are on, which is the root of the sandbox:
// where a machine has none that keeps to a size, nothing starts.
callers_apart!(kernel_22_no_sandbox_without_a_limit_on_its_disk, |caller| {
    let before = leaks_of(caller);
    for answer in ["mount=ENOSYS", "mount=EOPNOTSUPP"] {
        assert_refused(&before, answer, filtered(Agentbox::shipped(caller), answer));
    }
    let script = "df --output=size -B1M /workspace /home/agent /tmp | tail -n +2 | sort -u | tr -d ' '";
    let limited = || ["--disk", "8M", "--report"];
    let finished = Agentbox::shipped(caller).options(limited()).run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "8\n");
    let told = finished.stderr();
    assert!(told.contains("given     disk-limit         8MiB for all private directories"), "{told}");
    // Taken away, it is gone.
    let without = Agentbox::weakened(caller, &[policy::Wall::DiskLimit]).options(limited());
    assert_ne!(without.run(["sh", "-c", script]).stdout(), "8\n");
});
