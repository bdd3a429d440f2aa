//! Reads the records of a log, once or for as long as it is written. Shows what is there and judges nothing but
//! whether it can be read: whether the chain is whole is for [`verify`](crate::verify()) to say.

use std::path::Path;
use std::time::{Duration, Instant};

use policy::SandboxId;

use crate::walk::{Step, Walk};
use crate::{Event, Part, ReadError, Record, Recorded};

/// How often a log that is followed is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reads all records of a sandbox's log, oldest first.
pub fn records(directory: &Path, id: &SandboxId) -> Result<Records, ReadError> {
    Ok(Records { reader: Reader::start(directory, id)?, is_over: false })
}

/// Reads all records of a sandbox's log, oldest first, and then those that are still to come.
pub fn follow(directory: &Path, id: &SandboxId) -> Result<Follow, ReadError> {
    Ok(Follow { reader: Reader::start(directory, id)? })
}

/// The records of a log. A line that is none is an error, after which others may come.
#[derive(Debug)]
pub struct Records {
    reader: Reader,
    is_over: bool,
}

impl Records {
    /// Whether the log ends, once all records have been read, with a record whose write was cut off.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.is_over && !self.reader.is_shown && !self.reader.walk.line().is_empty()
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        match self.reader.next() {
            Ok(Some(record)) => Some(Ok(record)),
            Ok(None) => {
                self.is_over = true;
                self.reader.unaccounted().map(Err)
            }
            Err(error) => {
                // A line that is no record can be passed over; anything else would be found again.
                self.is_over = !matches!(error, ReadError::NotARecord { .. });
                Some(Err(error))
            }
        }
    }
}

/// The records of a log that may still be written. It goes on through new parts.
#[derive(Debug)]
pub struct Follow {
    reader: Reader,
}

impl Follow {
    /// The next record, or nothing if none comes within `patience`. After an error other than
    /// [`ReadError::NotARecord`] there is nothing more to be had.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Record>, ReadError> {
        let start = Instant::now();
        loop {
            let record = self.reader.next()?;
            let left = patience.saturating_sub(start.elapsed());
            if record.is_some() || left.is_zero() {
                return Ok(record);
            }
            std::thread::sleep(INTERVAL.min(left));
        }
    }
}

#[derive(Debug)]
struct Reader {
    walk: Walk,
    /// The first line that is no record and that no record has accounted for yet.
    strange: Option<(Part, u64)>,
    /// A record that waits until that was told.
    waiting: Option<Record>,
    /// Whether the line at the end, which has no newline yet, was a whole record and was given out.
    is_shown: bool,
}

impl Reader {
    fn start(directory: &Path, id: &SandboxId) -> Result<Self, ReadError> {
        Ok(Self { walk: Walk::start_to_show(directory, id)?, strange: None, waiting: None, is_shown: false })
    }

    /// The next record, or nothing at the end of what is there now.
    fn next(&mut self) -> Result<Option<Record>, ReadError> {
        if let Some(record) = self.waiting.take() {
            return Ok(Some(record));
        }
        loop {
            let step = self.walk.step()?;
            let (part, line) = (self.walk.part(), self.walk.line_number());
            let text = self.walk.line();
            let was_shown = match step {
                Step::TooLong => return Err(ReadError::TooLong { part, line }),
                Step::Line | Step::PartEnd => std::mem::take(&mut self.is_shown),
                Step::End => self.is_shown,
            };
            let is_nothing = was_shown || text.is_empty() && step != Step::Line;
            let record = if is_nothing { None } else { Record::parse(text) };
            match (step, record) {
                (_, Some(record)) => {
                    self.is_shown = step == Step::End;
                    return self.account(record).map(Some);
                }
                (Step::End, None) => return Ok(None),
                (_, None) if is_nothing => {}
                (_, None) => {
                    self.strange.get_or_insert((part, line));
                }
            }
        }
    }

    /// Tells of strange lines before the record after them, unless that says that they were torn.
    fn account(&mut self, record: Record) -> Result<Record, ReadError> {
        if matches!(record.event, Recorded::Known(Event::Torn(_))) {
            self.strange = None;
        }
        match self.unaccounted() {
            None => Ok(record),
            Some(error) => {
                self.waiting = Some(record);
                Err(error)
            }
        }
    }

    fn unaccounted(&mut self) -> Option<ReadError> {
        self.strange.take().map(|(part, line)| ReadError::NotARecord { part, line })
    }
}
