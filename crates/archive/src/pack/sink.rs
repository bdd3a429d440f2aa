//! The stream that an archive is written to: one buffer, into which small files are read directly.

use std::fs::File;
use std::io;

use rustix::io::Errno;

use crate::block::{BLOCK, Fields, Kind, LARGEST_OWNER, link_fits, split};
use crate::buffer::Buffer;
use crate::extended::{ATTRIBUTE, Attribute, write_record};
use crate::moment::Moment;
use crate::number::LARGEST_OCTAL;

use super::output::Output;

/// As much as is read and written at once.
const BUFFER: usize = 256 * 1024;

/// From this size on it is worth it to ask the kernel to move a file itself.
const LARGE: u64 = 1024 * 1024;

/// An entry to be written.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) kind: Kind,
    /// As it stands in the archive; a directory's ends with a slash.
    pub(super) name: &'a [u8],
    pub(super) link: &'a [u8],
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) modified: Moment,
    pub(super) uid: u64,
    pub(super) gid: u64,
    pub(super) attributes: &'a [Attribute],
}

/// Where reading a file's contents ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// As long as it was announced.
    Whole,
    /// It ended earlier, and the rest is zeros.
    Shrank,
    /// It went on, and the rest was left.
    Grew,
    /// It could not be read any further, and the rest is zeros.
    Failed(Errno),
}

/// A stream of blocks.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    output: Output<'a>,
    buffer: Buffer,
    filled: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(output: Output<'a>) -> Self {
        Self { output, buffer: Buffer::new(BUFFER), filled: 0 }
    }

    /// Writes the header of an entry, with an extended one before it where something does not fit.
    pub(super) fn header(&mut self, entry: &Outgoing<'_>) -> io::Result<()> {
        let mut records = Vec::new();
        let (prefix, name) = split(entry.name).unwrap_or_else(|| {
            write_record(&mut records, "path", entry.name);
            // The header has as much of it as fits, for whoever reads only that.
            (&[], entry.name)
        });
        if !link_fits(entry.link) {
            write_record(&mut records, "linkpath", entry.link);
        }
        let size = if entry.size <= LARGEST_OCTAL {
            entry.size
        } else {
            write_record(&mut records, "size", entry.size.to_string().as_bytes());
            0
        };
        let whole_seconds =
            u64::try_from(entry.modified.seconds).ok().filter(|_| entry.modified.nanoseconds == 0);
        let seconds = whole_seconds.filter(|seconds| *seconds <= LARGEST_OCTAL).unwrap_or_else(|| {
            write_record(&mut records, "mtime", entry.modified.decimal().as_bytes());
            u64::try_from(entry.modified.seconds).unwrap_or(0).min(LARGEST_OCTAL)
        });
        let mut owner = |key, number| {
            if number > LARGEST_OWNER {
                write_record(&mut records, key, u64::to_string(&number).as_bytes());
            }
            number.min(LARGEST_OWNER)
        };
        let (uid, gid) = (owner("uid", entry.uid), owner("gid", entry.gid));
        for (name, value) in entry.attributes {
            write_record(&mut records, [ATTRIBUTE, name].concat(), value);
        }
        if !records.is_empty() {
            self.extended(&records)?;
        }
        let Outgoing { kind, link, mode, .. } = *entry;
        let fields = Fields { kind, prefix, name, link, mode, size, seconds, uid, gid };
        self.put(&fields.encode())
    }

    fn extended(&mut self, records: &[u8]) -> io::Result<()> {
        let fields = Fields {
            kind: Kind::Extended,
            prefix: b"",
            name: b"././@PaxHeader",
            link: b"",
            mode: 0o644,
            size: records.len() as u64,
            seconds: 0,
            uid: 0,
            gid: 0,
        };
        self.put(&fields.encode())?;
        self.put(records)?;
        self.pad(records.len() as u64)
    }

    /// Writes exactly `size` bytes from `file`, and what fills the last block.
    pub(super) fn contents(&mut self, file: &File, size: u64) -> io::Result<Contents> {
        let mut written = 0;
        if size >= LARGE {
            self.empty()?;
            written = self.output.move_in(file, size)?;
        }
        let mut outcome = Contents::Whole;
        while written < size {
            let space = self.space(size - written)?;
            match rustix::io::read(file, space) {
                Ok(0) => outcome = Contents::Shrank,
                Ok(count) => {
                    self.filled += count;
                    written += count as u64;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(errno) => outcome = Contents::Failed(errno),
            }
            break;
        }
        self.zeros(size - written)?;
        self.pad(size)?;
        if outcome == Contents::Whole && rustix::io::read(file, &mut [0]).is_ok_and(|count| count > 0) {
            outcome = Contents::Grew;
        }
        Ok(outcome)
    }

    /// Writes contents that are at hand, and what fills the last block.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(bytes)?;
        self.pad(bytes.len() as u64)
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.zeros(2 * BLOCK as u64)?;
        self.empty()?;
        self.output.flush()
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let space = self.space(bytes.len() as u64)?;
            let (now, later) = bytes.split_at(space.len());
            space.copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
        }
        Ok(())
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        self.zeros(size.wrapping_neg() % BLOCK as u64)
    }

    fn zeros(&mut self, mut count: u64) -> io::Result<()> {
        while count > 0 {
            let space = self.space(count)?;
            space.fill(0);
            let length = space.len();
            self.filled += length;
            count -= length as u64;
        }
        Ok(())
    }

    /// Room for at most `wanted` bytes and at least one.
    fn space(&mut self, wanted: u64) -> io::Result<&mut [u8]> {
        if self.filled == self.buffer.len() {
            self.empty()?;
        }
        let free = &mut self.buffer[self.filled..];
        let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(free.len());
        Ok(&mut free[..length])
    }

    fn empty(&mut self) -> io::Result<()> {
        self.output.write(&self.buffer[..self.filled])?;
        self.filled = 0;
        Ok(())
    }
}
