//! Verifies a log from its first record to its last, one line in memory. Anything changed, taken out, put in or put
//! elsewhere is found, except that a log alone cannot show that its end was cut off: for that a head is needed which
//! was kept elsewhere.

use std::path::Path;

use policy::SandboxId;
use sha2::{Digest as _, Sha256};

use crate::record::{Whole, is_begun};
use crate::walk::{Step, Walk};
use crate::{Ending, Event, Hash, Part, RECORD_LIMIT, ReadError, Time, Torn};

/// What a whole log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many records.
    pub count: u64,
    /// When the first was written.
    pub first: Option<Time>,
    /// When the last was written.
    pub last: Option<Time>,
    /// The hash of the last.
    pub head: Hash,
    /// Which record has the expected head; nothing where none was expected. More may have been written after it.
    pub expected: Option<u64>,
    /// How many times a write was cut off in the past, which a record of kind `torn` says each time.
    pub torn: u64,
    /// How the log ends.
    pub ending: Ending,
}

/// The first place at which a log is not whole.
#[derive(Debug, thiserror::Error)]
#[error("{part}, line {line}")]
pub struct Broken {
    /// The part.
    pub part: Part,
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong there.
    #[source]
    pub why: Flaw,
}

/// What can be wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// Its bytes are not those that were hashed.
    #[error("the hash is not that of the record")]
    Hash,
    /// It does not follow the record before it.
    #[error("the record does not name the hash of the record before")]
    Prev,
    /// It has another number than its place.
    #[error("record {found} stands where {expected} should")]
    Seq {
        /// The number after the last one.
        expected: u64,
        /// The number of the record.
        found: u64,
    },
    /// The first record of a part does not follow the last of the part before.
    #[error("the part begins with record {found} and should with {expected}")]
    Gap {
        /// The number after the last one of the part before.
        expected: u64,
        /// The number of the record.
        found: u64,
    },
    /// No JSON, or not a record's, and no record after it says that it was torn.
    #[error("the line is not a record")]
    NotARecord,
    /// Longer than any record.
    #[error("the line is longer than {RECORD_LIMIT} bytes")]
    TooLong,
    /// The last record of an older part has lost its newline.
    #[error("the last line of the part has no end")]
    NoNewline,
    /// A record says that bytes before it are torn, and they are not, or are others.
    #[error("what the record says is torn before it is not there")]
    Torn,
    /// All is whole, but the expected head is not among it: the end was cut off, or it is another log.
    #[error("the log ends before the head {0}")]
    HeadNotReached(Hash),
    /// It cannot be read on, or a part is missing.
    #[error("the log cannot be read")]
    Unreadable(#[source] ReadError),
}

/// Verifies all parts of a sandbox's log in order. With `expected`, the log must hold the record that has this hash.
pub fn verify(directory: &Path, id: &SandboxId, expected: Option<Hash>) -> Result<Verified, Broken> {
    let unreadable = |part, line| move |error| Broken { part, line, why: Flaw::Unreadable(error) };
    let mut walk = Walk::start(directory, id).map_err(unreadable(Part::Newest, 1))?;
    let mut chain = Chain::new(expected);
    loop {
        let step = walk.step().map_err(unreadable(walk.part(), walk.line_number()))?;
        let place = Place { part: walk.part(), line: walk.line_number() };
        let line = walk.line();
        match step {
            Step::TooLong => return Err(place.broken(Flaw::TooLong)),
            Step::Line => {
                if !chain.take(line, place)? {
                    chain.tear(line, place, Some(b'\n'));
                }
            }
            Step::PartEnd => chain.end_part(line, place)?,
            Step::End => return chain.end(line, place),
        }
    }
}

#[derive(Clone, Copy)]
struct Place {
    part: Part,
    line: u64,
}

impl Place {
    const fn broken(self, why: Flaw) -> Broken {
        Broken { part: self.part, line: self.line, why }
    }
}

/// Bytes that are no records, from the last record on.
struct Region {
    place: Place,
    why: Flaw,
    hasher: Sha256,
    bytes: u64,
    /// The newline after the last piece. The one before a `torn` record is that record's and does not count.
    newline: Option<u8>,
    /// Whether the log could end with it: each line may be the beginning of the next record.
    is_plausible: bool,
}

impl Region {
    fn new(place: Place, why: Flaw) -> Self {
        Self { place, why, hasher: Sha256::new(), bytes: 0, newline: None, is_plausible: true }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn push_newline(&mut self) {
        if let Some(newline) = self.newline.take() {
            self.push(&[newline]);
        }
    }

    fn torn(self) -> Torn {
        Torn { bytes: self.bytes, sha256: Hash::finish(self.hasher) }
    }
}

/// What has been verified so far.
struct Chain {
    verified: Verified,
    seq: u64,
    wanted: Option<Hash>,
    region: Option<Region>,
}

impl Chain {
    fn new(wanted: Option<Hash>) -> Self {
        let (head, ending) = (Hash::ZERO, Ending::Clean);
        let expected = (wanted == Some(head)).then_some(0);
        let verified = Verified { count: 0, first: None, last: None, head, expected, torn: 0, ending };
        Self { verified, seq: 0, wanted, region: None }
    }

    /// Verifies a record; says whether the line is one at all.
    fn take(&mut self, line: &[u8], place: Place) -> Result<bool, Broken> {
        let Some(whole) = Whole::parse(line) else { return Ok(false) };
        let record = &whole.envelope;
        let says_torn = match serde_json::from_str(record.event.get()) {
            Ok(Event::Torn(torn)) => Some(torn),
            _ => None,
        };
        if let (Some(_), None) = (&self.region, says_torn)
            && let Some(region) = self.region.take()
        {
            return Err(region.place.broken(region.why));
        }
        if !whole.is_intact() {
            return Err(place.broken(Flaw::Hash));
        }
        let (expected, found) = (self.seq.saturating_add(1), record.seq);
        if found != expected {
            let is_gap = place.line == 1 && self.seq > 0;
            let gap = Flaw::Gap { expected, found };
            return Err(place.broken(if is_gap { gap } else { Flaw::Seq { expected, found } }));
        }
        if record.prev != self.verified.head {
            return Err(place.broken(Flaw::Prev));
        }
        if self.region.take().map(Region::torn) != says_torn {
            return Err(place.broken(Flaw::Torn));
        }
        self.seq = found;
        self.verified.count += 1;
        self.verified.torn += u64::from(says_torn.is_some());
        self.verified.first.get_or_insert(record.time);
        self.verified.last = Some(record.time);
        self.verified.head = record.hash;
        if self.wanted == Some(record.hash) {
            self.verified.expected = Some(found);
        }
        Ok(true)
    }

    /// Remembers a line that is no record, until a record says that it was torn.
    fn tear(&mut self, piece: &[u8], place: Place, newline: Option<u8>) {
        let region = self.region.get_or_insert_with(|| Region::new(place, Flaw::NotARecord));
        region.push_newline();
        region.push(piece);
        region.newline = newline;
        region.is_plausible &= newline.is_none() || is_begun(piece, self.seq.saturating_add(1));
    }

    /// The end of an older part; `rest` stood there without a newline.
    fn end_part(&mut self, rest: &[u8], place: Place) -> Result<(), Broken> {
        if let (true, Some(region)) = (rest.is_empty(), &mut self.region) {
            region.push_newline();
        } else if !rest.is_empty() && self.take(rest, place)? {
            self.region = Some(Region::new(place, Flaw::NoNewline));
        } else if !rest.is_empty() {
            self.tear(rest, place, None);
        }
        Ok(())
    }

    /// The end of the log; `rest` stands there without a newline.
    fn end(mut self, rest: &[u8], place: Place) -> Result<Verified, Broken> {
        if !rest.is_empty() && self.take(rest, place)? {
            self.verified.ending = Ending::NoNewline;
        } else if !rest.is_empty() {
            self.tear(rest, place, None);
        }
        if let Some(mut region) = self.region.take() {
            if !region.is_plausible {
                return Err(region.place.broken(region.why));
            }
            region.push_newline();
            self.verified.ending = Ending::Torn(region.torn());
        }
        match self.wanted {
            Some(wanted) if self.verified.expected.is_none() => {
                Err(place.broken(Flaw::HeadNotReached(wanted)))
            }
            _ => Ok(self.verified),
        }
    }
}
