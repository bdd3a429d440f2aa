//! One git for many questions: it is asked on its stdin, answers on its stdout, and ends with whoever asks.

use std::io::{self, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::git::GitError;

/// A git that answers.
pub(crate) struct Asking {
    child: Child,
    pub(crate) questions: ChildStdin,
    pub(crate) answers: BufReader<ChildStdout>,
}

impl Asking {
    pub(crate) fn start(mut command: Command) -> Result<Self, GitError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Run)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(questions), Some(answers)) => {
                Ok(Self { child, questions, answers: BufReader::new(answers) })
            }
            _ => Err(GitError::Run(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
