//! Whoever is killed, and whatever hangs: the sandbox ends with its reason, and nothing is left.

use std::time::Duration;

use harness::{Caller, HostProcess, callers_apart, host_processes, leaks_of};
use policy::Backend;
use rustix::process::{Pid, Signal, kill_process};

use crate::{backends, with};

fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// The processes of a run, by who they are.
struct Found {
    keeper: i32,
    supervisor: i32,
    runtime: i32,
    /// What the runtime has made: its own processes, and with a kernel of the host's init.
    below: Vec<i32>,
}

fn find(cli: i32) -> Option<Found> {
    let all = host_processes();
    let children = |parent: i32| all.iter().filter(move |process| process.parent == parent);
    let named = |process: &&HostProcess, name: &str| process.name == name[..name.len().min(15)];
    let keeper = children(cli).find(|process| named(process, "agentbox-keeper"))?.pid;
    let supervisor = children(keeper).find(|process| named(process, "agentbox-supervisor"))?.pid;
    let is_runtime = |process: &&HostProcess| {
        process.arguments.first().is_some_and(|word| ["runsc", "crun", "runc"].contains(&word.as_str()))
    };
    let runtime = children(keeper).find(is_runtime)?.pid;
    let mut below: Vec<i32> = children(runtime).map(|process| process.pid).collect();
    let further: Vec<i32> = below.iter().flat_map(|pid| children(*pid)).map(|process| process.pid).collect();
    below.extend(further);
    Some(Found { keeper, supervisor, runtime, below })
}

fn each_killed(caller: Caller, backend: Backend, signal: Signal) {
    for victim in ["runtime", "below", "supervisor", "keeper"] {
        let before = leaks_of(caller);
        let running = with(caller, backend).start(["sh", "-c", "echo runs; sleep 300"]);
        running.wait_for("runs\n");
        let found = find(running.pid()).expect("the processes of a run");
        assert!(!found.below.is_empty(), "{backend}: the runtime has made nothing");
        match victim {
            "runtime" => kill(found.runtime, signal),
            "below" => found.below.iter().for_each(|pid| kill(*pid, signal)),
            "supervisor" => kill(found.supervisor, signal),
            _ => kill(found.keeper, signal),
        }
        let finished = running.finish();
        assert_ne!(finished.code, 0, "{backend}: {victim}");
        assert!(finished.stderr().contains("error: "), "{backend}: {victim}: {}", finished.stderr());
        // What a killed keeper left on disk goes with the next command.
        with(caller, backend).run(["true"]).assert_success();
        before.assert_nothing_left();
    }
}

callers_apart!(whoever_is_killed_nothing_is_left, |caller| {
    for backend in backends() {
        each_killed(caller, backend, Signal::KILL);
    }
});

callers_apart!(a_runtime_that_hangs_is_ended, |caller| {
    for backend in backends() {
        let before = leaks_of(caller);
        let agentbox = harness::Agentbox::shipped(caller);
        let created = agentbox.words(&["create", "--backend", backend.name()]).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let id = String::from_utf8(created.stdout).unwrap().trim().to_owned();
        let stopped: Vec<i32> = host_processes()
            .into_iter()
            .filter(|process| process.arguments.iter().any(|word| word == &id))
            .map(|process| process.pid)
            .collect();
        assert!(!stopped.is_empty(), "{backend}: no process names {id}");
        stopped.iter().for_each(|pid| kill(*pid, Signal::STOP));
        let removed = agentbox.words(&["rm", "--force", &id]).output().unwrap();
        assert!(removed.status.success(), "{backend}: {}", String::from_utf8_lossy(&removed.stderr));
        before.assert_nothing_left();
    }
});

callers_apart!(a_program_that_is_no_runtime_is_an_error_with_its_words, |caller| {
    let before = leaks_of(caller);
    let directory = caller.directory();
    // It answers to every name by saying that it has no such applet.
    assert!(harness::copy_program(std::path::Path::new("/bin/busybox"), &directory.path().join("crun")));
    caller.own(&directory.path().join("crun"));
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let begun = std::time::Instant::now();
    let finished = with(caller, Backend::Crun).env("PATH", &path).run(["true"]);
    let stderr = finished.assert_refused().stderr();
    assert!(
        stderr.contains("crun did not start the sandbox") && stderr.contains("applet not found"),
        "{stderr}"
    );
    assert!(begun.elapsed() < Duration::from_secs(50), "it was waited for in vain");
    before.assert_nothing_left();
});
