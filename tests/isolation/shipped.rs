//! The shipped program has no switch that turns a wall off, and none that makes it fail.

use std::path::Path;
use std::process::Command;

use failpoint::Point;
use harness::{Agentbox, Caller, Company, as_caller, binaries};

const SWITCHES: [&str; 2] = ["AGENTBOX_WEAKEN", "AGENTBOX_FAILPOINT"];

#[test]
fn no_switch_is_in_the_shipped_program() {
    let shipped = binaries().shipped();
    let (init, weakened) = (shipped.with_file_name("agentbox-init"), binaries().weakened());
    for word in SWITCHES.into_iter().chain(Point::ALL.iter().map(|point| point.name())) {
        assert!(!is_in(&shipped, word) && !is_in(&init, word), "{word} is in the shipped program");
        assert!(is_in(&weakened, word), "the weakened build is not what it should be: it has no {word}");
    }
}

/// By a program that is built to search: unoptimised, this one would take a third of a minute.
fn is_in(file: &Path, word: &str) -> bool {
    let found = Command::new("grep")
        .args(["--quiet", "--text", "--fixed-strings", "-e", word])
        .arg(file)
        .status()
        .unwrap();
    match found.code() {
        Some(0) => true,
        Some(1) => false,
        _ => panic!("'{}' cannot be searched", file.display()),
    }
}

#[test]
fn the_shipped_init_takes_no_wall_away() {
    let init = binaries().shipped().with_file_name("agentbox-init");
    let mut command = Command::new(init);
    let output = command.args(["--weaken", "capabilities"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_switch_does_nothing_in_the_shipped_program() {
    if !harness::is_on(harness::HOST_KERNEL, "there is no filter of ours") {
        return;
    }
    as_caller(Caller::Root, Company::Anybody, |caller| {
        let sandbox =
            Agentbox::shipped(caller).env("AGENTBOX_WEAKEN", "seccomp,capabilities,mount-namespace");
        let finished = sandbox.run(["sh", "-c", "grep Seccomp: /proc/self/status; ls /host"]);
        assert!(finished.stdout().contains("2"), "{}", finished.stdout());
        assert!(finished.stderr().contains("No such file"), "{}", finished.stderr());
    });
}
