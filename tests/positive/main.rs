//! The positive suite: real tools work behind the walls, in the program as it ships. A wall that stops them would
//! soon be taken away by its owner.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod compilers;
mod debuggers;
mod runtimes;
mod tools;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use harness::{Agentbox, Finished};
use rustix::process::geteuid;

/// Whether the host has a program. tests/setup.sh installs all of them where it may.
fn has(program: &str) -> bool {
    if Path::new(program).exists() {
        return true;
    }
    assert!(!geteuid().is_root(), "'{program}' is not installed: run tests/setup.sh");
    let _ = writeln!(std::io::stderr(), "skipped: '{program}' is not installed");
    false
}

/// Runs a shell script in /workspace, which stops at the first command that fails.
#[track_caller]
fn script(agentbox: Agentbox, text: &str) -> Finished {
    let running = agentbox.option("--timeout=5m").start(["sh", "-euc", text]);
    let finished = running.finish_within(Duration::from_secs(330));
    finished.assert_success();
    finished
}
