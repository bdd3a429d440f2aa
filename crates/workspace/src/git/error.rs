//! What git said when it did not do what it was told, made inert.

use std::io;

/// Why git did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It is not on this machine.
    #[error("git is not installed")]
    NotInstalled,
    /// It could not be run.
    #[error("cannot run git")]
    Run(#[source] io::Error),
    /// It ended with a complaint.
    #[error("git {what} failed")]
    Failed {
        /// Which command.
        what: String,
        /// The end of what it said, made inert.
        source: Said,
    },
}

/// What git said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Said(String);

impl Said {
    /// The end of it, which says why; it may quote names of files that somebody inside chose.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        const MOST: usize = 2000;
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MOST)..]).trim().to_owned();
        let shown = text.lines().map(|line| line.escape_debug().to_string()).collect::<Vec<_>>().join("; ");
        Self(if shown.is_empty() { "it gave no reason".to_owned() } else { shown })
    }
}
