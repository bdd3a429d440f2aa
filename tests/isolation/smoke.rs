//! The harness itself.

use harness::{Agentbox, callers_alone, leaks, probe_mount};

callers_alone!(the_probe_runs, |caller| {
    let before = leaks();
    let finished = Agentbox::shipped(caller).options(["--mount", &probe_mount()]).run(["/probe", "hello"]);
    assert_eq!(finished.assert_success().stdout(), "hello\n");
    let mut running = Agentbox::shipped(caller).start(["cat"]);
    let processes = running.processes();
    assert!(leaks().since(&before).iter().any(|line| line.contains(&processes.init.to_string())));
    running.write(b"typed\n");
    running.wait_for("typed\n");
    assert_eq!(running.finish().assert_success().stdout(), "typed\n");
    before.assert_nothing_left();
});
