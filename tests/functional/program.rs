//! The program with any words, where `Agentbox` only knows `run`.

use std::process::Stdio;

use harness::{Caller, Finished, binaries};

/// Calls agentbox with these words and an empty stdin.
pub(crate) fn agentbox(caller: Caller, words: &[&str]) -> Finished {
    let output = caller.command(&binaries().shipped()).args(words).stdin(Stdio::null()).output().unwrap();
    Finished { code: output.status.code().unwrap(), stdout: output.stdout, stderr: output.stderr }
}
