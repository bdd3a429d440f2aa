//! The shipped program has no switch that turns a wall off.

use harness::{Agentbox, Caller, as_caller, binaries, together};

const SWITCH: &[u8] = b"AGENTBOX_WEAKEN";

#[test]
fn no_switch_is_in_the_shipped_program() {
    let holds_switch =
        |path| std::fs::read(path).unwrap().windows(SWITCH.len()).any(|window| window == SWITCH);
    assert!(!holds_switch(binaries().shipped()));
    assert!(!holds_switch(binaries().shipped().with_file_name("agentbox-init")));
    assert!(holds_switch(binaries().weakened()), "the weakened build is not what it should be");
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
    as_caller(Caller::Root, together, |caller| {
        let sandbox =
            Agentbox::shipped(caller).env("AGENTBOX_WEAKEN", "seccomp,capabilities,mount-namespace");
        let finished = sandbox.run(["sh", "-c", "grep Seccomp: /proc/self/status; ls /host"]);
        assert!(finished.stdout().contains("2"), "{}", finished.stdout());
        assert!(finished.stderr().contains("No such file"), "{}", finished.stderr());
    });
}
