//! Why a sandbox did not come to be.

use std::io;
use std::path::PathBuf;

use handover::{HandoverError, Problem};
use jail::JailError;

use crate::runtime::RuntimeWords;

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    #[error(transparent)]
    Jail(#[from] JailError),
    #[error("the order did not arrive")]
    Order(#[from] HandoverError),
    #[error("cannot use '{}'", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot start the supervisor")]
    Supervisor(#[source] io::Error),
    #[error("the supervisor could not confine itself and has ended")]
    Unconfined(#[source] io::Error),
    #[error("cannot watch over the sandbox")]
    Watch(#[source] io::Error),
    #[error("{program} did not start the sandbox")]
    Runtime { program: &'static str, source: RuntimeWords },
    #[error("cannot put the sandbox on record")]
    Audit(#[source] audit::WriteError),
}

impl KeeperError {
    pub(crate) fn problem(&self) -> Problem {
        let hint = match self {
            Self::Jail(error) => error.hint(),
            Self::Audit(_) => Some(
                "check that the state directory can be written; what was changed by hand has to be moved away".to_owned(),
            ),
            Self::File { .. } => Some("check that the runtime directory can be written".to_owned()),
            Self::Unconfined(_) => {
                Some("run `agentbox doctor` to see which wall this machine refuses".to_owned())
            }
            Self::Runtime { .. } => Some(
                "`agentbox doctor` tries out every backend; --backend native needs no other program".to_owned(),
            ),
            Self::Order(_) | Self::Supervisor(_) | Self::Watch(_) => None,
        };
        Problem::new(self, hint)
    }
}
