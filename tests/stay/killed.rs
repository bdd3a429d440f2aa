//! Processes of ours are killed: the sandbox ends or goes on as promised, and the next command knows.

use harness::{HostProcess, callers, callers_apart, host_processes, leaks_of};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

callers!(the_caller_may_be_killed, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let running = home.begin(&["exec", &id, "--", "sh", "-c", "echo ready; sleep 600"]);
    running.wait_for("ready");
    running.signal(Signal::KILL);
    let _ = running.finish();
    // Its command ends with it; the sandbox does not.
    assert_eq!(home.exec(&id, &["echo", "alive"]), "alive\n");
});

callers_apart!(whoever_of_us_is_killed_ends_it, |caller| {
    let home = Home::new(caller);
    for victim in ["keeper", "init", "supervisor"] {
        let before = leaks_of(caller);
        let id = home.create(&[]);
        home.say(&["exec", "--detach", &id, "--", "sleep", "600"]).assert_success();
        home.exec(&id, &["sh", "-c", "echo kept > f"]);
        let pid = home.status(&id)[victim].as_i64().unwrap();
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
        home.say(&["wait", &id]).assert_success();
        assert_eq!(home.entry(&id)["reason"], "killed", "after the {victim}");
        assert_eq!(home.entry(&id)["state"], "stopped", "after the {victim}");
        home.say(&["exec", &id, "--", "true"]).assert_refused();
        // What was kept is still there, and it can be started again.
        home.say(&["start", &id]).assert_success();
        assert_eq!(home.exec(&id, &["cat", "f"]), "kept\n", "after the {victim}");
        home.say(&["rm", "--force", &id]).assert_success();
        before.assert_nothing_left();
    }
});

callers_apart!(a_stopped_supervisor_does_not_keep_anybody_from_removing_it, |caller| {
    let home = Home::new(caller);
    let before = leaks_of(caller);
    let id = home.create(&[]);
    let supervisor = home.status(&id)["supervisor"].as_i64().unwrap().try_into().unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    home.say(&["rm", "--force", &id]).assert_success();
    // A dead one may still have a number, which the host's own init frees whenever it gets to it.
    let lives = |process: &HostProcess| process.pid == supervisor && process.state != 'Z';
    assert!(!host_processes().iter().any(lives));
    before.assert_nothing_left();
});
