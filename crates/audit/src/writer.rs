//! Writes a log. On the exposed side: it has one descriptor, opened for appending by somebody else, and never a path.
//!
//! One record is one `write`. Where the kernel takes only a part of it (the disk is full), the writer keeps the rest
//! and writes it before anything else, so what a living writer leaves is always a beginning of the whole log. If it
//! dies before that, the end is torn; the next writer begins on a new line with a record of kind `torn` that names the
//! bytes, which puts them into the chain.
//!
//! Nothing is made durable record by record: the kernel keeps what was written whichever of our processes dies, and to
//! outlive a power cut would make a record take a third of a millisecond instead of four microseconds (measured on
//! ext4). [`Writer::sync`] is for the end of a sandbox, and a part is made durable before the next one is begun, so
//! that a power cut takes the end of a log and never its middle.
//!
//! `O_APPEND` keeps an honest writer honest. One that was taken over could still cut the file short, so its filter has
//! to refuse `ftruncate` and the change of that flag; a head that was kept elsewhere shows it in any case.

use std::io;
use std::os::fd::OwnedFd;
use std::time::SystemTime;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::record::encode;
use crate::{Ending, Event, Hash, Head, RECORD_LIMIT, Time, Torn, WriteError};

/// When a part is full, unless told otherwise.
pub const PART_LIMIT: u64 = 16 << 20;

/// The writing end of a log.
#[derive(Debug)]
pub struct Writer {
    descriptor: OwnedFd,
    /// What the next record goes on from, as though all of `unwritten` were written.
    head: Head,
    limit: u64,
    line: Vec<u8>,
    /// Where in `line` the bytes begin that the kernel has not taken yet.
    unwritten: usize,
}

impl Writer {
    /// Goes on from `head` on a descriptor that was opened with `O_APPEND`.
    pub fn new(descriptor: OwnedFd, head: Head) -> Result<Self, WriteError> {
        check(&descriptor, head.length)?;
        Ok(Self { descriptor, head, limit: PART_LIMIT, line: Vec::new(), unwritten: 0 })
    }

    /// Calls a part full at `bytes`.
    #[must_use]
    pub const fn with_part_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// What the next record goes on from. Its hash is worth keeping elsewhere: a log alone cannot show that its end was
    /// cut off.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// For another writer to go on with, once every record is whole.
    #[must_use]
    pub fn into_parts(self) -> (OwnedFd, Head) {
        (self.descriptor, self.head)
    }

    /// Whether it is time for [`Writer::go_on`]. Records can still be written.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.head.length >= self.limit
    }

    /// Puts an event on record.
    pub fn append(&mut self, time: SystemTime, event: &Event) -> Result<(), WriteError> {
        if matches!(event, Event::Torn(_)) {
            return Err(WriteError::Reserved);
        }
        self.finish().map_err(WriteError::NotWritten)?;
        let time = Time::from(time);
        if let Ending::Torn(torn) = self.head.ending {
            self.put(time, &Event::Torn(torn))?;
        }
        self.put(time, event)
    }

    /// Goes on in a new, empty part. What is left of a record that was cut off is written to the old part first; where
    /// that fails, the writer stays there.
    pub fn go_on(&mut self, descriptor: OwnedFd) -> Result<(), WriteError> {
        check(&descriptor, 0)?;
        self.finish().map_err(WriteError::NotWritten)?;
        self.sync()?;
        if self.head.ending == Ending::NoNewline {
            self.head.ending = Ending::Torn(Torn { bytes: 0, sha256: Hash::of(b"") });
        }
        self.head.length = 0;
        self.descriptor = descriptor;
        Ok(())
    }

    /// Waits until everything written is on the disk.
    pub fn sync(&self) -> Result<(), WriteError> {
        match rustix::fs::fdatasync(&self.descriptor) {
            // A pipe has nothing that could be made durable.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(error) => Err(WriteError::Descriptor(error.into())),
        }
    }

    fn put(&mut self, time: Time, event: &Event) -> Result<(), WriteError> {
        self.line.clear();
        self.unwritten = 0;
        let begins_line = self.head.length > 0 && self.head.ending != Ending::Clean;
        if begins_line {
            self.line.push(b'\n');
        }
        let start = self.line.len();
        let seq = self.head.seq.saturating_add(1);
        let encoded = encode(&mut self.line, (seq, self.head.hash), time, event);
        let length = self.line.len() - start;
        let hash = match encoded {
            Ok(hash) if length <= RECORD_LIMIT => hash,
            failed => {
                self.line.clear();
                return Err(failed.map_or_else(WriteError::Json, |_| WriteError::TooLong(length)));
            }
        };
        if let Err(error) = self.write_some() {
            self.line.clear();
            return Err(WriteError::NotWritten(error));
        }
        (self.head.seq, self.head.hash, self.head.ending) = (seq, hash, Ending::Clean);
        self.finish().map_err(WriteError::Cut)
    }

    /// Writes what the kernel has not taken yet.
    fn finish(&mut self) -> io::Result<()> {
        while self.unwritten < self.line.len() {
            self.write_some()?;
        }
        Ok(())
    }

    /// One write; at least one byte of it was taken where it succeeds.
    fn write_some(&mut self) -> io::Result<()> {
        let written = loop {
            match rustix::io::write(&self.descriptor, &self.line[self.unwritten..]) {
                Err(Errno::INTR) => {}
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                written => break written?,
            }
        };
        self.unwritten += written;
        self.head.length += written as u64;
        Ok(())
    }
}

/// Whether a descriptor appends, and to a file of this length.
fn check(descriptor: &OwnedFd, expected: u64) -> Result<(), WriteError> {
    let failed = |error: Errno| WriteError::Descriptor(error.into());
    if !rustix::fs::fcntl_getfl(descriptor).map_err(failed)?.contains(OFlags::APPEND) {
        return Err(WriteError::NotAppending);
    }
    let stat = rustix::fs::fstat(descriptor).map_err(failed)?;
    let found = u64::try_from(stat.st_size).unwrap_or_default();
    if FileType::from_raw_mode(stat.st_mode).is_file() && found != expected {
        return Err(WriteError::OtherLength { expected, found });
    }
    Ok(())
}
