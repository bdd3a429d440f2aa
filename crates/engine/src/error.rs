//! What can go wrong before a keeper takes over.

use std::io;
use std::path::PathBuf;

use handover::{HandoverError, Problem};

/// A failure of the engine's own.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A directory or file of ours.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A runtime directory that belongs to somebody else.
    #[error("'{}' belongs to user {owner}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The static program that becomes PID 1 is not beside ours.
    #[error("agentbox-init is not beside '{}'", .0.display())]
    NoInit(PathBuf),
    /// The keeper could not be started or did not answer.
    #[error("cannot start the keeper")]
    Keeper(#[source] io::Error),
    /// The keeper went away.
    #[error("the keeper does not answer")]
    Handover(#[from] HandoverError),
    /// The kernel gave no random bytes.
    #[error("cannot make an id")]
    Random(#[source] io::Error),
}

impl EngineError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::File { .. } => {
                "check that it can be written, or set XDG_RUNTIME_DIR to a directory of yours"
            }
            Self::Foreign { .. } => "set XDG_RUNTIME_DIR to a directory of yours",
            Self::NoInit(_) => "install both programs of the release into one directory",
            Self::Keeper(_) | Self::Handover(_) | Self::Random(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// The failure as a person reads it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::new(self, self.hint())
    }
}
