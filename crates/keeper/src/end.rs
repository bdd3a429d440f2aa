//! How a sandbox ended: why, with what, and where nobody had asked for it, whose end it was.

use std::path::Path;

use handover::{Loss, Reason, State, Status, now_ms};

use crate::error::KeeperError;
use crate::supervisor::Supervisor;

/// Whose end nobody had asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Init, or what it runs in.
    Inside,
    /// And why it gave up, if it did.
    Supervisor(Option<String>),
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

    /// What is inside has ended first.
    pub(crate) fn of_inside() -> Self {
        Self { lost: Some(Lost::Inside), ..Self::new(Reason::Killed) }
    }

    /// The supervisor has.
    pub(crate) fn of_supervisor(supervisor: &Supervisor) -> Self {
        let gave_up = supervisor.last_failure().map(|error| error.to_string());
        let why = match &gave_up {
            Some(why) => format!("its supervisor gave up: {why}"),
            None => "its supervisor was lost".to_owned(),
        };
        Self { lost: Some(Lost::Supervisor(gave_up)), why: Some(why), ..Self::new(Reason::Killed) }
    }

    /// Who was gone unasked, for whoever ordered the sandbox.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match (&self.lost, &self.why) {
            (Some(Lost::Supervisor(why)), _) => Some(Loss::Supervisor(why.clone())),
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
