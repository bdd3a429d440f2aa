//! Machines that lack something, made by root around the caller: a limit of zero, a filter, a covered /proc, a
//! broken helper. The doctor names what is missing and the command that mends it; a sandbox is refused in the form
//! that a person reads, and nothing is left of it.

use harness::{Caller, Finished, binaries, callers_alone, callers_apart, leaks_of};
use rustix::process::geteuid;

use crate::checkup::{Checkup, examine, run};

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// The probe program as a machine without namespaces of a kind.
fn without(kind: &str) -> Vec<String> {
    words([&binaries().probe().display().to_string(), "without", kind, "--"])
}

/// The probe program as a kernel that answers some calls with an error.
fn answering(answers: &str) -> Vec<String> {
    words([&binaries().probe().display().to_string(), "outer", answers, "--"])
}

/// A mount namespace of its own in which a shell of root's has changed something.
fn changed(change: &str) -> Vec<String> {
    let script = format!("{change} && exec \"$@\"");
    words(["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", &script, "sh"])
}

/// What the doctor and a sandbox say on such a machine.
#[track_caller]
fn refused(caller: Caller, prefix: &[String]) -> (Checkup, Finished) {
    let before = leaks_of(caller);
    let checkup = examine(caller, prefix);
    assert_eq!(checkup.code, 1, "{:#}", checkup.json);
    assert_eq!(checkup.state("sandbox"), "missing");
    assert!(checkup.json["report"].as_array().unwrap().is_empty());
    let finished = run(caller, prefix);
    finished.assert_refused();
    let said = finished.stderr();
    for part in ["cause: ", "hint: "] {
        assert!(said.lines().any(|line| line.starts_with(part)), "no {part} in {said}");
    }
    assert_eq!(finished.stdout(), "");
    before.assert_nothing_left();
    (checkup, finished)
}

/// What `setup` would do on such a machine.
#[track_caller]
fn setup(caller: Caller, prefix: &[String]) -> String {
    let mut command = caller.command_behind(prefix, &binaries().shipped(), &[]);
    let output = command.args(["setup", "all"]).output().unwrap();
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Only root can take something away from a machine.
fn is_possible() -> bool {
    if !geteuid().is_root() {
        println!("skipped: only root can make a machine that lacks something");
    }
    geteuid().is_root()
}

callers_apart!(no_user_namespace_may_be_made, |caller| {
    if !is_possible() {
        return;
    }
    let (checkup, finished) = refused(caller, &without("user"));
    checkup.assert_missing("user-namespace", "sudo sysctl -w user.max_user_namespaces=15000");
    checkup.assert_missing("max-user-namespaces", "sudo sysctl -w user.max_user_namespaces=15000");
    checkup.assert_missing("sandbox", "sudo sysctl -w user.max_user_namespaces=15000");
    assert_eq!(checkup.state("seccomp"), "ok", "what needs no namespace is probed all the same");
    assert!(finished.stderr().contains("user.max_user_namespaces"), "{}", finished.stderr());
});

callers_apart!(other_namespaces_have_a_limit_of_their_own, |caller| {
    // Root in a user namespace of the test's making may not take hold of mounts, which is another refusal.
    if caller == Caller::Root || !is_possible() {
        return;
    }
    for kind in ["pid", "net", "ipc", "uts"] {
        let (checkup, _) = refused(caller, &without(kind));
        let fix = format!("user.max_{kind}_namespaces=15000");
        checkup.assert_missing(&format!("{kind}-namespace"), &fix);
        assert_eq!(checkup.state("user-namespace"), "ok");
    }
});

callers_apart!(a_security_module_refuses_the_first_mount, |caller| {
    // As AppArmor does: the namespace is granted.
    let (checkup, finished) = refused(caller, &answering("mount=EACCES"));
    assert_eq!(checkup.state("user-namespace"), "ok");
    assert_eq!(checkup.state("mount-namespace"), "missing");
    let detail = checkup.probe("mount-namespace").1;
    assert!(detail.contains("Permission denied"), "{detail}");
    assert!(finished.stderr().contains("AppArmor"), "{}", finished.stderr());
});

callers_apart!(a_filter_hides_clone3, |caller| {
    let (checkup, _) = refused(caller, &answering("clone3=ENOSYS"));
    assert_eq!(checkup.state("user-namespace"), "missing");
});

callers_apart!(landlock_is_hidden, |caller| {
    let checkup = examine(caller, &answering("landlock_create_ruleset=EOPNOTSUPP"));
    assert_eq!(checkup.code, 0, "a reported wall keeps no sandbox from starting: {:#}", checkup.json);
    checkup.assert_missing("landlock", "lsm=landlock");
});

callers_apart!(a_covered_proc_gives_no_fresh_one, |caller| {
    if !is_possible() {
        return;
    }
    let covered = changed("mount -t tmpfs none /proc/fs");
    let (checkup, finished) = refused(caller, &covered);
    let (state, detail, fix) = checkup.probe("fresh-proc");
    assert_eq!((state, detail), ("missing", "mount a new /proc: Operation not permitted (os error 1)"));
    assert!(fix.is_some_and(|fix| fix.contains("unconfined") || fix.contains("Unmasked")), "{fix:?}");
    assert_eq!(checkup.state("mount-namespace"), "ok");
    assert!(finished.stderr().contains("systempaths=unconfined"), "{}", finished.stderr());
});

callers_apart!(newuidmap_cannot_be_run, |caller| {
    if caller != Caller::Subordinate || !is_possible() {
        return;
    }
    let (checkup, _) = refused(caller, &changed("mount --bind /etc/hostname /usr/bin/newuidmap"));
    checkup.assert_missing("id-range", "again");
    assert_eq!(checkup.state("user-namespace"), "ok");
});

callers_apart!(what_is_there_is_not_offered_again, |caller| {
    if caller != Caller::Subordinate || !is_possible() {
        return;
    }
    // Without newuidmap, and with the range that the caller has.
    let bare = changed(
        "mount -t tmpfs none /mnt && mknod /mnt/newuidmap c 0 0 && mknod /mnt/newgidmap c 0 0 && \
         mount -t overlay -o lowerdir=/mnt:/usr/bin none /usr/bin",
    );
    let checkup = examine(caller, &bare);
    let (state, detail, fix) = checkup.probe("id-range");
    let fix = fix.unwrap();
    assert_eq!(state, "weaker", "{detail}");
    assert!(fix.contains("uidmap") && !fix.contains("usermod"), "{fix}");
    let told = setup(caller, &bare);
    assert!(told.contains(fix) && !told.contains("usermod"), "{told}");
});

callers_apart!(setup_says_what_the_doctor_says, |caller| {
    let (checkup, told) = (examine(caller, &[]), setup(caller, &[]));
    for name in ["id-range", "memory-limit", "backend-gvisor", "backend-crun", "backend-runc"] {
        let (state, _, fix) = checkup.probe(name);
        match fix {
            Some(fix) if fix.starts_with("agentbox setup ") => {
                let program = name.replace("backend-", "").replace("gvisor", "runsc");
                assert!(told.contains(&format!("# {program} ")), "{name}: {told}");
            }
            // Of several steps, each says for itself what it is for.
            Some(fix) => assert!(
                fix.lines().all(|line| told.contains(line)),
                "{name} is {state}: no '{fix}' in {told}"
            ),
            None => assert_eq!(state, "ok", "{name}"),
        }
    }
});

callers_apart!(a_range_that_is_gone_is_reported, |caller| {
    if caller != Caller::Subordinate || !is_possible() {
        return;
    }
    let checkup = examine(caller, &changed("mount --bind /dev/null /etc/subuid"));
    assert_eq!(checkup.code, 0);
    let (state, _, fix) = checkup.probe("id-range");
    assert_eq!(state, "weaker");
    assert!(fix.unwrap().contains("usermod --add-subuids"), "{fix:?}");
});

callers_alone!(the_command_that_mends_limits_mends_them, |caller| {
    if caller == Caller::Root || !is_possible() {
        return;
    }
    let before = examine(caller, &[]);
    let (state, _, fix) = before.probe("memory-limit");
    if state == "ok" {
        return;
    }
    // In a shell of root's there is no need for sudo; whoever it becomes stays in the cgroup.
    let fix = fix.unwrap().replace("sudo ", "");
    if !fix.contains("cgroup.procs") {
        println!("skipped: this machine is mended by logging in again: {fix}");
        return;
    }
    let script = format!("{{ {fix}; }} >/dev/null && exec \"$@\"");
    let mended = examine(caller, &words(["/bin/sh", "-c", &script, "sh"]));
    remove_handed_over(caller);
    assert_eq!(mended.code, 0, "{:#}", mended.json);
    for name in ["memory-limit", "cpu-limit", "pids-limit"] {
        assert_eq!(mended.state(name), "ok", "{:?}", mended.probe(name));
    }
});

/// What the command made stays, as it should; a test gives it back.
fn remove_handed_over(caller: Caller) {
    let name = format!("agentbox-{}", caller.uid());
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let _ = std::fs::remove_dir(hierarchy.path().join(&name));
    }
    let _ = std::fs::remove_dir(format!("/sys/fs/cgroup/{name}/shell"));
    let _ = std::fs::remove_dir(format!("/sys/fs/cgroup/{name}"));
}
