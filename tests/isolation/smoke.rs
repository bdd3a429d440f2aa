//! The harness itself.

use harness::{Agentbox, callers, leaks, probe_mount};

callers!(the_probe_runs, |caller| {
    let before = leaks();
    let finished = Agentbox::shipped(caller).options(["--mount", &probe_mount()]).run(["/probe", "hello"]);
    assert_eq!(finished.assert_success().stdout(), "hello\n");
    let mut running = Agentbox::shipped(caller).start(["cat"]);
    let processes = running.processes();
    println!("{processes:?} {:?}", leaks().since(&before));
    running.write(b"typed\n");
    running.wait_for("typed\n");
    assert_eq!(running.finish().assert_success().stdout(), "typed\n");
    before.assert_nothing_left();
});
