//! The shipped program has no switch that turns a wall off, and none that makes it fail.

use failpoint::Point;
use harness::{Agentbox, Caller, as_caller, binaries, together};

const SWITCHES: [&str; 2] = ["AGENTBOX_WEAKEN", "AGENTBOX_FAILPOINT"];

#[test]
fn no_switch_is_in_the_shipped_program() {
    let shipped = [binaries().shipped(), binaries().shipped().with_file_name("agentbox-init")];
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let [shipped, init] = shipped.map(read);
    let weakened = read(binaries().weakened());
    for word in SWITCHES.into_iter().chain(Point::ALL.iter().map(|point| point.name())) {
        assert!(!shipped.contains(word) && !init.contains(word), "{word} is in the shipped program");
        assert!(weakened.contains(word), "the weakened build is not what it should be: it has no {word}");
    }
}

#[test]
fn the_shipped_init_takes_no_wall_away() {
    let init = binaries().shipped().with_file_name("agentbox-init");
    let mut command = std::process::Command::new(init);
    let output = command.args(["--weaken", "capabilities"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_switch_does_nothing_in_the_shipped_program() {
    if !harness::is_on(harness::HOST_KERNEL, "there is no filter of ours") {
        return;
    }
    as_caller(Caller::Root, together, |caller| {
        let sandbox =
            Agentbox::shipped(caller).env("AGENTBOX_WEAKEN", "seccomp,capabilities,mount-namespace");
        let finished = sandbox.run(["sh", "-c", "grep Seccomp: /proc/self/status; ls /host"]);
        assert!(finished.stdout().contains("2"), "{}", finished.stdout());
        assert!(finished.stderr().contains("No such file"), "{}", finished.stderr());
    });
}
