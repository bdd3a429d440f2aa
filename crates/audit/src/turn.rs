//! One writer at a time. Whoever writes a log holds a lock on its newest part, by the descriptor that it writes to: the
//! kernel gives it up when the writer has ended, however it ends, and the next one waits for that. Without it a keeper's
//! killer could be quicker than the death of the supervisor, and two would go on from one head.
//!
//! On the owner's side, which also decides here how much a writer may have: one that was taken over can ask for parts,
//! and gets the next one only when it has filled the last.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::head::{Recovered, recover};
use crate::parts::{Directory, io_failed, is_same};
use crate::{Event, Head, PART_LIMIT, Part, ReadError, WriteError, Writer, begin_part, open};

/// How many parts a log has at most, the newest included: 1 GiB.
pub const PARTS_LIMIT: usize = 64;

/// How long a writer that should have ended is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first pause between two looks at a lock; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_micros(200);

/// The right to write a log, until its descriptor is closed.
#[derive(Debug)]
pub struct Turn {
    /// For a [`Writer`].
    pub descriptor: OwnedFd,
    /// What the next record goes on from.
    pub head: Head,
    /// Whether the last record is the end of the sandbox or of its time: `stopped`, `lost` or `removed`.
    pub has_end: bool,
}

/// Waits until nobody writes a log any more and opens it to be written; makes it where there is none.
pub fn take_turn(directory: &Path, id: &SandboxId) -> Result<Turn, ReadError> {
    let held = Directory::open(directory)?;
    let path = held.path_of(&Part::Newest.file_name(id));
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        let descriptor = open(directory, id)?;
        match flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            // Whoever wrote may have begun another part in the meantime.
            Ok(()) if is_newest(&held, id, &descriptor)? => {
                let Recovered { head, has_end, .. } = recover(&held, id)?;
                return Ok(Turn { descriptor, head, has_end });
            }
            Ok(()) | Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (2 * pause).min(Duration::from_millis(20));
            }
            Err(Errno::WOULDBLOCK) => return Err(ReadError::Busy(path)),
            Err(errno) => return Err(io_failed("lock", path, errno.into())),
        }
    }
}

/// Writes what is on record last, for a writer that was killed before it could, once it has ended. Not where the log has
/// an end, or has not begun. Says whether it was written.
pub fn conclude(directory: &Path, id: &SandboxId, event: &Event) -> Result<bool, WriteError> {
    if Head::read(directory, id).map_err(WriteError::Log)?.seq == 0 {
        return Ok(false);
    }
    let turn = take_turn(directory, id).map_err(WriteError::Log)?;
    if turn.has_end {
        return Ok(false);
    }
    turn.write(event)?;
    Ok(true)
}

impl Turn {
    /// Writes one event, and gives the turn up.
    pub fn write(self, event: &Event) -> Result<(), WriteError> {
        Writer::new(self.descriptor, self.head)?.append(SystemTime::now(), event)
    }
}

/// The next part for the writer whose turn it is, which comes locked as the last one was. Only when the newest is really
/// full, and only so many.
pub fn next_part(directory: &Path, id: &SandboxId) -> Result<OwnedFd, ReadError> {
    let held = Directory::open(directory)?;
    let path = held.path_of(&Part::Newest.file_name(id));
    let failed = |source| io_failed("look at", path.clone(), source);
    let newest = held.part(id, Part::Newest)?.ok_or_else(|| ReadError::NoLog(path.clone()))?;
    if newest.metadata().map_err(failed)?.len() < PART_LIMIT {
        return Err(ReadError::NotFull(path));
    }
    let numbers = held.numbers(id)?;
    // One that has its number already, as whoever gave it was killed, is counted once.
    let last = numbers.last().map(|number| held.part(id, Part::Numbered(*number))).transpose()?.flatten();
    let has_number = last.map(|last| is_same(&last, &newest)).transpose().map_err(failed)? == Some(true);
    if numbers.len() + usize::from(!has_number) >= PARTS_LIMIT {
        return Err(ReadError::Full(path));
    }
    let part = begin_part(directory, id)?;
    // Nobody else knows it for longer than a look takes.
    flock(&part, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
    Ok(part)
}

/// Whether a descriptor is of the part that is the newest now.
fn is_newest(held: &Directory, id: &SandboxId, descriptor: &OwnedFd) -> Result<bool, ReadError> {
    let failed = |source| io_failed("look at", held.path_of(&Part::Newest.file_name(id)), source);
    let Some(newest) = held.part(id, Part::Newest)? else { return Ok(false) };
    is_same(&newest, &File::from(descriptor.try_clone().map_err(failed)?)).map_err(failed)
}
