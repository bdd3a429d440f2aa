//! How a sandbox ended: why, with what, and where nobody had asked for it, whose end it was.

use std::path::Path;

use handover::{Loss, Reason, State, Status, now_ms};

use crate::error::KeeperError;

/// Why a sandbox ended with its supervisor.
const SUPERVISOR_LOST: &str = "its supervisor was lost";

/// Whose end nobody had asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Init, or what it runs in.
    Inside,
    Supervisor,
}

/// How a sandbox ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) reason: Reason,
    pub(crate) code: Option<u8>,
    pub(crate) lost: Option<Lost>,
    /// What is known of it beside that, for a person.
    pub(crate) why: Option<String>,
}

impl End {
    pub(crate) const fn new(reason: Reason) -> Self {
        Self { reason, code: None, lost: None, why: None }
    }

    pub(crate) fn exited(code: u8) -> Self {
        Self { code: Some(code), ..Self::new(Reason::Exited) }
    }

    pub(crate) fn lost(lost: Lost) -> Self {
        let why = (lost == Lost::Supervisor).then(|| SUPERVISOR_LOST.to_owned());
        Self { lost: Some(lost), why, ..Self::new(Reason::Killed) }
    }

    /// Who was gone unasked, for whoever ordered the sandbox.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match (self.lost, &self.why) {
            (Some(Lost::Supervisor), _) => Some(Loss::Supervisor),
            (Some(Lost::Inside), Some(why)) => Some(Loss::Inside(why.clone())),
            (Some(Lost::Inside) | None, _) => None,
        }
    }

    pub(crate) fn write(&self, kept: &Path) -> Result<(), KeeperError> {
        let (reason, code, why) = (self.reason, self.code, self.why.clone());
        file(kept, State::Stopped { at_ms: now_ms(), reason, code, why })
    }
}

/// Puts on file what a sandbox is now.
pub(crate) fn file(kept: &Path, state: State) -> Result<(), KeeperError> {
    let written = Status::new(state).write(kept);
    written.map_err(|source| KeeperError::File { path: kept.to_owned(), source })
}
