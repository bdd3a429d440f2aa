//! The isolation suite: each test runs something hostile inside and looks from the host. The numbers are those
//! of the design's list of walls.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod canary;
mod files;
mod goldens;
mod hostile_init;
mod kernel;
mod listener;
mod missing;
mod posture;
mod processes;
mod shipped;
mod sockets;
mod supervisor;
mod syscalls;

use harness::{Agentbox, probe_mount};

/// Runs a command of the probe inside and gives what it printed.
#[track_caller]
fn probe(sandbox: Agentbox, words: &[&str]) -> String {
    let words = std::iter::once("/probe").chain(words.iter().copied());
    let finished = sandbox.options(["--mount", &probe_mount()]).run(words);
    finished.assert_success().stdout()
}

/// An error that names the lines, if there are any.
fn none_of<'a>(what: &str, lines: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(format!("{what}: {}", lines.join("; "))) }
}

/// An error that names the attempts that did not end in one of these ways.
fn all_refused(output: &str, ways: &[&str]) -> Result<(), String> {
    assert!(!output.is_empty(), "the probe tried nothing");
    let is_refused = |line: &&str| ways.iter().any(|way| line.ends_with(&format!(" {way}")));
    none_of("not refused", output.lines().filter(|line| !is_refused(line)))
}
