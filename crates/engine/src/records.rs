//! What is on record of the caller's sandboxes: whose it is, how far it goes, what is said for those who were killed,
//! and when it goes.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use audit::{Event, Hash, Head, OurProcess};
use policy::SandboxId;

use crate::error::EngineError;
use crate::start::Engine;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a record outlives its sandbox, unless somebody asks for less or more.
pub const RECORD_DAYS: u32 = 30;

/// How far a record goes. Kept elsewhere, it shows that the end of one was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// How many entries there are.
    pub entries: u64,
    /// The hash of the last.
    pub head: Hash,
}

/// Puts on record that a keeper was killed, where nothing says how its sandbox ended. Where it cannot be written now, the
/// next start does it.
pub(crate) fn keeper_was_killed(records: &Path, id: &SandboxId) {
    let _ = audit::conclude(records, id, &Event::Lost { process: OurProcess::Keeper });
}

/// Puts on record that a sandbox is gone, as well as it goes, and before that how it ended, where nothing says so.
pub(crate) fn removed(records: &Path, id: &SandboxId) {
    if Head::read(records, id).is_ok_and(|head| head.seq > 0)
        && let Ok(turn) = audit::take_turn(records, id)
    {
        let turn = if turn.has_end {
            Ok(turn)
        } else {
            let _ = turn.write(&Event::Lost { process: OurProcess::Keeper });
            audit::take_turn(records, id)
        };
        let _ = turn.map(|turn| turn.write(&Event::Removed));
    }
}

impl Engine {
    /// Whose record is meant: also that of a sandbox that is gone.
    pub fn find_record(&self, text: &str) -> Result<SandboxId, EngineError> {
        match (self.find(text), text.parse::<SandboxId>()) {
            (Err(EngineError::Unknown(_)), Ok(id)) if self.record_head(&id).is_some() => Ok(id),
            (found, _) => found,
        }
    }

    /// Sees to it that the record of a sandbox whose keeper was killed says so, before anybody reads it. Whoever cleaned up
    /// may have been a command with another state directory, which knows nothing of it.
    pub fn close_record(&self, id: &SandboxId) {
        if !self.is_running(id) {
            keeper_was_killed(&self.directories.audit(), id);
        }
    }

    /// How far the record of a sandbox goes; none where there is none, or none that can be read.
    #[must_use]
    pub fn record_head(&self, id: &SandboxId) -> Option<RecordHead> {
        let head = Head::read(&self.directories.audit(), id).ok().filter(|head| head.seq > 0)?;
        Some(RecordHead { entries: head.seq, head: head.hash })
    }

    /// Removes what is older than so many days on record of sandboxes that are gone: whose.
    pub fn expire_records(&self, days: u32) -> Result<Vec<SandboxId>, EngineError> {
        let directory = self.directories.audit();
        let older = SystemTime::now().checked_sub(DAY * days).unwrap_or(SystemTime::UNIX_EPOCH);
        let lives = |id: &str| {
            // What is no id of ours is nobody's to remove.
            id.parse().is_ok_and(|id| self.is_there(&id))
        };
        audit::expire(&directory, older, lives)
            .map_err(|error| EngineError::State { path: directory, source: io::Error::other(error) })
    }

    /// Whether nothing has expired for a day, so that records go also where nobody ever asks for it. Says so once: the
    /// file that remembers it is made new.
    pub(crate) fn is_expiry_due(&self) -> bool {
        let stamp = self.directories.expiry_stamp();
        let modified = fs::metadata(&stamp).and_then(|metadata| metadata.modified());
        let is_fresh = modified.is_ok_and(|modified| is_within_a_day(modified, SystemTime::now()));
        // Where it cannot be written, as there is no state yet, there is nothing to expire or no right to.
        !is_fresh && File::create(&stamp).and_then(|file| file.set_modified(SystemTime::now())).is_ok()
    }
}

/// A moment in the future is one of a clock that was wrong, and remembers nothing.
fn is_within_a_day(then: SystemTime, now: SystemTime) -> bool {
    now.duration_since(then).is_ok_and(|age| age < DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_over_after_a_day_and_a_wrong_clock_stops_nothing() {
        let now = SystemTime::now();
        assert!(is_within_a_day(now, now));
        assert!(is_within_a_day(now - DAY / 2, now));
        assert!(!is_within_a_day(now - DAY, now));
        assert!(!is_within_a_day(now + DAY, now));
    }
}
