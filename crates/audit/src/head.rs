//! The head of a log: what the next record goes on from. Recovered from the end of the newest part after a crash, by
//! the owner's side, in bounded time and memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use policy::SandboxId;
use serde::{Deserialize, Serialize};

use crate::parts::{Directory, io_failed, is_same};
use crate::record::{Whole, is_begun};
use crate::{Event, Hash, Part, RECORD_LIMIT, ReadError, Time, Torn};

/// How much of a part's end is looked at: the last record and what was torn after it, more than once.
const WINDOW: u64 = 4 * RECORD_LIMIT as u64;

/// What the next record goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the last record; 0 where there is none.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// How many bytes the newest part has, torn ones included.
    pub length: u64,
    /// What follows the last record.
    pub ending: Ending,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// With a record and its newline.
    Clean,
    /// With a whole record that lacks its newline.
    NoNewline,
    /// With bytes of a record whose write was cut off.
    Torn(Torn),
}

/// What the end of a log tells.
pub(crate) struct Recovered {
    pub(crate) head: Head,
    /// When the last record says that it was written.
    pub(crate) time: Option<Time>,
    /// Whether the last record is the end of a sandbox, or of its time.
    pub(crate) has_end: bool,
}

/// The last record of a log.
struct Last {
    seq: u64,
    hash: Hash,
    time: Time,
    is_end: bool,
}

/// The end of one part.
struct Tail {
    last: Option<Last>,
    /// What follows it; where there is no record, all of the part.
    after: Vec<u8>,
    has_newline: bool,
}

impl Head {
    /// The head of a log in which nothing is written yet.
    pub const START: Self = Self { seq: 0, hash: Hash::ZERO, length: 0, ending: Ending::Clean };

    /// Reads the head of a sandbox's log; one that is not there yet has not begun. Refused where the end cannot be
    /// what a write that was cut off has left: going on would hide that somebody changed it.
    pub fn read(directory: &Path, id: &SandboxId) -> Result<Self, ReadError> {
        Ok(recover(&Directory::open(directory)?, id)?.head)
    }
}

/// Looks at the end of a log.
pub(crate) fn recover(directory: &Directory, id: &SandboxId) -> Result<Recovered, ReadError> {
    let path = |part: Part| directory.path_of(&part.file_name(id));
    let Some(newest) = directory.part(id, Part::Newest)? else {
        return if directory.part(id, Part::Numbered(1))?.is_none() {
            Ok(Recovered { head: Head::START, time: None, has_end: false })
        } else {
            Err(ReadError::MissingPart(path(Part::Newest)))
        };
    };
    let failed = |source| io_failed("read", path(Part::Newest), source);
    let length = newest.metadata().map_err(failed)?.len();
    let mut tail = Tail::read(&newest, &path(Part::Newest))?;
    let mut is_in_newest = true;
    // Looked for one by one where there can be any: listing all logs takes as long as there are many.
    let is_first = tail.last.is_some() || directory.part(id, Part::Numbered(1))?.is_none();
    let mut numbers = if is_first { Vec::new() } else { directory.numbers(id)? };
    // A part that has just begun has no record, or the beginning of one; the head is in the part before.
    while tail.last.is_none()
        && let Some(number) = numbers.pop()
    {
        let part = Part::Numbered(number);
        let file = directory.part(id, part)?.ok_or_else(|| ReadError::MissingPart(path(part)))?;
        if is_same(&file, &newest).map_err(failed)? {
            continue;
        }
        let mut before = Tail::read(&file, &path(part))?;
        before.after.append(&mut tail.after);
        (tail, is_in_newest) = (before, false);
        if tail.after.len() as u64 > WINDOW {
            return Err(ReadError::NoHead(path(part)));
        }
    }
    let Last { seq, hash, time, is_end } = match tail.last {
        Some(last) => last,
        None => Last { seq: 0, hash: Hash::ZERO, time: Time::from(std::time::UNIX_EPOCH), is_end: false },
    };
    let mut pieces: Vec<&[u8]> = tail.after.split(|byte| *byte == b'\n').collect();
    pieces.pop();
    if !pieces.into_iter().all(|piece| is_begun(piece, seq.saturating_add(1))) {
        return Err(ReadError::NoHead(path(Part::Newest)));
    }
    let torn = Torn { bytes: tail.after.len() as u64, sha256: Hash::of(&tail.after) };
    let ending = match (tail.after.is_empty(), tail.has_newline) {
        (true, true) => Ending::Clean,
        // A newline in the next part would not end this one's last line; that nothing else is torn is said there.
        (true, false) if is_in_newest => Ending::NoNewline,
        (true, false) | (false, _) => Ending::Torn(torn),
    };
    // What was torn after an end was the beginning of more.
    let has_end = is_end && tail.after.is_empty();
    Ok(Recovered { head: Head { seq, hash, length, ending }, time: (seq > 0).then_some(time), has_end })
}

impl Tail {
    /// Looks for the last record backwards from the end.
    fn read(file: &File, path: &Path) -> Result<Self, ReadError> {
        let failed = |source| io_failed("read", path.to_owned(), source);
        let length = file.metadata().map_err(failed)?.len();
        let offset = length.saturating_sub(WINDOW);
        let mut bytes = vec![0; usize::try_from(length - offset).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        let mut end = bytes.len();
        loop {
            let start = bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            let is_cut = start == 0 && offset > 0;
            if !is_cut && let Some(last) = last(&bytes[start..end]) {
                let has_newline = end < bytes.len();
                let after = bytes.split_off(if has_newline { end + 1 } else { end });
                return Ok(Self { last: Some(last), after, has_newline });
            }
            // No write of ours leaves a line that readers would refuse.
            let is_too_long = end - start >= RECORD_LIMIT;
            match start {
                0 if offset > 0 || is_too_long => return Err(ReadError::NoHead(path.to_owned())),
                0 => return Ok(Self { last: None, after: bytes, has_newline: true }),
                _ if is_too_long => return Err(ReadError::NoHead(path.to_owned())),
                _ => end = start - 1,
            }
        }
    }
}

fn last(line: &[u8]) -> Option<Last> {
    let whole = Whole::parse(line)?;
    let (seq, hash, time) = (whole.envelope.seq, whole.envelope.hash, whole.envelope.time);
    let event = serde_json::from_str::<Event>(whole.envelope.event.get());
    let is_end = event.is_ok_and(|event| event.is_end());
    whole.is_intact().then_some(Last { seq, hash, time, is_end })
}
