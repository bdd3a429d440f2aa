//! The options of `run` that are about the command and its sandbox.

use harness::{Agentbox, Caller, HOST_KERNEL, backend, callers, is_on};
use policy::Backend;

fn shell(agentbox: Agentbox, script: &str) -> String {
    agentbox.run(["sh", "-c", script]).assert_success().stdout()
}

callers!(workdir, |caller| {
    assert_eq!(shell(Agentbox::shipped(caller), "pwd"), "/workspace\n");
    assert_eq!(shell(Agentbox::shipped(caller).option("--workdir=/usr/../tmp"), "pwd; touch here"), "/tmp\n");
    assert_eq!(shell(Agentbox::shipped(caller).option("--workdir=/"), "pwd"), "/\n");
});

// As those write it who are used to it elsewhere.
callers!(interactive, |caller| {
    let finished = Agentbox::shipped(caller).option("-i").stdin("passed on").run(["cat"]);
    assert_eq!(finished.assert_success().stdout(), "passed on");
});

callers!(name, |caller| {
    let script = "hostname; cat /etc/hostname; getent hosts box-7.test | head -1";
    let named = shell(Agentbox::shipped(caller).option("--name=box-7.test"), script);
    assert!(named.starts_with("box-7.test\nbox-7.test\n127.0.0.1"), "{named}");
    // Its id otherwise, another one each time.
    let unnamed = || shell(Agentbox::shipped(caller), "hostname");
    let (first, second) = (unnamed(), unnamed());
    assert!(first.trim().len() == 12 && first != second, "{first} {second}");
});

callers!(user, |caller| {
    let whoami =
        "echo $(id -u):$(id -g):$(id -un):$(id -G); touch /workspace/mine /home/agent/mine /tmp/mine";
    assert_eq!(shell(Agentbox::shipped(caller), whoami), "1000:1000:agent:1000\n");
    let agentbox = |user: &str| Agentbox::shipped(caller).options(["--user", user]);
    match caller {
        Caller::Root | Caller::Subordinate => {
            assert_eq!(shell(agentbox("1234"), whoami), "1234:1234:user:1234\n");
            assert_eq!(shell(agentbox("1234:4321"), whoami), "1234:4321:user:4321\n");
            assert_eq!(shell(agentbox("1"), whoami), "1:1:user:1\n");
        }
        Caller::Single => {
            let stderr = agentbox("1234").run(["true"]).assert_refused().stderr();
            let error = "error: user 1234:1234 does not exist inside: only 1000 is mapped here\nhint: ";
            assert!(stderr.contains(error), "{stderr}");
        }
    }
    // With a kernel of its own there is one, of whom tests/backends tells.
    if !is_on(HOST_KERNEL, "root is to be had inside") {
        return;
    }
    for root in ["root", "0", "0:0", "1000:0"] {
        assert!(
            agentbox(root).run(["true"]).assert_refused().stderr().contains("error: root is not to be had")
        );
    }
});

callers!(nested, |caller| {
    let closed = Agentbox::shipped(caller).run(["unshare", "--user", "--map-root-user", "id", "-u"]);
    if backend().has_own_kernel() {
        // Those are its kernel's own, and none of the host's: there is nothing to close.
        assert_eq!(closed.assert_success().stdout(), "0\n");
        let report = Agentbox::shipped(caller).option("--report").run(["true"]).stderr();
        let given = report.lines().any(|line| line.starts_with("given     nested-namespaces"));
        assert!(given && report.contains("none of the host's"), "{report}");
        return;
    }
    assert_ne!(closed.code, 0);
    assert_eq!(closed.stdout(), "");
    let open = Agentbox::shipped(caller).option("--nested").run([
        "unshare",
        "--user",
        "--map-root-user",
        "id",
        "-u",
    ]);
    assert_eq!(open.assert_success().stdout(), "0\n");
    assert!(open.stderr().contains("missing   nested-namespaces  opened by --nested\n"), "{}", open.stderr());
});

callers!(disk, |caller| {
    let script =
        "head -c 3M /dev/zero > /workspace/fits && head -c 8M /dev/zero > /tmp/not; rm /tmp/not; echo $?";
    let finished = Agentbox::shipped(caller).option("--disk=8M").run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "0\n");
    assert!(finished.stderr().contains("No space left on device"), "{}", finished.stderr());
});

callers!(strict, |caller| {
    let finished = Agentbox::shipped(caller).option("--isolation=strict").run(["echo", "started"]);
    let report = Agentbox::shipped(caller).option("--report").run(["true"]).stderr();
    if report.lines().any(|line| line.starts_with("missing   runtime-version")) {
        // A runtime with known holes is as good as none.
        let stderr = finished.assert_refused().stderr();
        assert!(stderr.contains("strict isolation is not to be had here: runtime-version"), "{stderr}");
        assert_eq!(finished.stdout(), "");
        return;
    }
    match caller {
        Caller::Root => assert_eq!(finished.assert_success().stdout(), "started\n"),
        Caller::Subordinate | Caller::Single => {
            let stderr = finished.assert_refused().stderr();
            assert!(
                stderr.contains("error: strict isolation is not to be had here: memory-limit"),
                "{stderr}"
            );
            assert!(stderr.contains("hint: "), "{stderr}");
            assert_eq!(finished.stdout(), "");
        }
    }
});

#[test]
fn limits_are_visible_inside() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let agentbox = Agentbox::shipped(caller).options(["--memory=256M", "--cpus=0.5", "--pids=77"]);
        let v1 = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu*/cpu.cfs_quota_us \
                  /sys/fs/cgroup/pids/pids.max";
        let v2 = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/fs/cgroup/pids.max";
        let script = format!("if test -e /sys/fs/cgroup/memory.max; then {v2}; else {v1}; fi | tr '\\n' ' '");
        let seen = shell(agentbox, &script);
        // A runtime has threads of its own, which count among the sandbox's; a kernel of its own shows nothing of the host's.
        let expected = match backend() {
            Backend::Native => ["268435456 50000 77 ", "268435456 50000 100000 77 "],
            Backend::Crun => ["268435456 50000 81 ", "268435456 50000 100000 81 "],
            Backend::Runc => ["268435456 50000 141 ", "268435456 50000 100000 141 "],
            Backend::Gvisor => ["", ""],
        };
        assert!(expected.contains(&seen.as_str()), "{seen}");
    });
}
