//! How a run ends: all that was inside goes with the command, nothing inside holds it up, and an end that the
//! command did not choose is said.

use harness::{Agentbox, Caller, Finished, HOST_KERNEL, Processes, backend, callers, host_processes, is_on};
use rustix::process::{Pid, Signal, kill_process};

fn shell(caller: Caller, script: &str) -> Finished {
    Agentbox::shipped(caller).run(["sh", "-c", script])
}

/// A time to sleep that no other process has among its arguments.
fn unique(number: u32) -> String {
    format!("{}.{number}", 1_000_000 + std::process::id())
}

/// Whether a process with this argument is anywhere on the host.
fn is_alive(argument: &str) -> bool {
    host_processes().iter().any(|process| process.arguments.iter().any(|it| it == argument))
}

callers!(everything_ends_with_the_command, |caller| {
    let time = unique(caller.uid());
    let script = format!(
        "sleep {time} & setsid sleep {time} & (trap '' HUP INT TERM; sleep {time}) & \
         nohup setsid sh -c 'sleep {time} & exec sleep {time}' >/dev/null 2>&1 & \
         until test $(ps -e -o args= | grep -c '^sleep {time}') = 5; do sleep 0.01; done; \
         echo up; exit 11"
    );
    let finished = shell(caller, &script);
    assert_eq!(finished.assert_code(11).stdout(), "up\n");
    // Not one of them is there when the call returns.
    assert!(!is_alive(&time));
});

callers!(last_words_arrive_whole, |caller| {
    let finished = shell(caller, "head -c 3000000 /dev/zero; sleep 100000 & exit 7");
    assert_eq!(finished.assert_code(7).stdout.len(), 3_000_000);
});

callers!(a_time_out_ends_the_group_and_the_sandbox_the_rest, |caller| {
    let time = unique(100_000 + caller.uid());
    let script = format!("sleep {time} & setsid sleep {time} & wait; wait");
    Agentbox::shipped(caller).option("--timeout=300ms").run(["sh", "-c", &script]).assert_code(124);
    assert!(!is_alive(&time));
});

callers!(init_takes_no_signal_from_inside, |caller| {
    let script = "for s in TERM KILL INT HUP SEGV STOP QUIT USR1 ABRT; do kill -$s 1 2>/dev/null; done; \
                  sleep 0.1; echo alive; exit 13";
    let finished = shell(caller, script);
    if backend().has_own_kernel() && caller == Caller::Single {
        // Its kernel lets whoever has init's id end it, and where there is one id that is the agent: the sandbox ends, which is
        // said, and nothing else does.
        let stderr = finished.assert_refused().stderr();
        assert!(stderr.contains("error: the sandbox ended before the command did"), "{stderr}");
        return;
    }
    assert_eq!(finished.assert_code(13).stdout(), "alive\n");
});

callers!(a_stopped_command_can_be_ended, |caller| {
    let running = Agentbox::shipped(caller).start(["sh", "-c", "echo up; kill -STOP $$; echo never"]);
    running.wait_for("up\n");
    if is_on(HOST_KERNEL, "the host does not see that it is stopped, which takes no time") {
        let command = running.processes().command;
        while !host_processes().iter().any(|it| it.pid == command && it.state == 'T') {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    } else {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    // A process that is stopped takes no signal but one; the third request ends the sandbox.
    for _ in 0..3 {
        running.signal(Signal::INT);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(running.finish().assert_code(130).stdout(), "up\n");
});

callers!(a_killed_process_of_ours_is_said, |caller| {
    let native = backend() == policy::Backend::Native;
    // A runtime says in its own words what became of it.
    let inside = if native { "cause: its init was killed\n" } else { "cause: " };
    type Role = fn(Processes) -> i32;
    let roles: [(Role, &str); 3] = [
        (|all| all.keeper, "cause: it was killed or has failed, and the sandbox ended with it\n"),
        (|all| all.supervisor, "cause: its supervisor was lost\n"),
        (|all| all.init, inside),
    ];
    for (role, cause) in roles {
        // Once while it is quiet and once while output flows.
        for script in ["echo up; exec sleep 100000", "exec yes up"] {
            let running = Agentbox::shipped(caller).start(["sh", "-c", script]);
            running.wait_for("up\n");
            let victim = role(running.processes());
            kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
            let finished = running.finish();
            let stderr = finished.assert_refused().stderr();
            assert!(stderr.contains("error: the ") && stderr.contains(cause), "no '{cause}' in {stderr}");
            assert!(stderr.contains("\nhint: "), "{stderr}");
        }
    }
});
