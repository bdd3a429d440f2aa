//! The contents of one file, out or in. A transfer that was interrupted goes on at an offset.

use std::io::{Read, Seek, SeekFrom};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use wire::{FileAnswer, FileCode, FileDone, ReadFile, WriteFile, WriteHow};

use super::failure::Failure;
use super::{Streams, opening, status};

/// As much as is read of a file whose length the kernel does not know, as those in /proc.
const UNKNOWN_LENGTH: u64 = 16 * 1024 * 1024;

/// A part of a file, to stdout.
pub(super) fn read(ask: &ReadFile, streams: &mut Streams) -> Result<FileDone, Failure> {
    let failed = |error: std::io::Error| Failure::stream(&ask.path, &error);
    let (mut file, stat) = opening::regular(&ask.path, OFlags::RDONLY)?;
    let stat = status::describe(&stat);
    // A file that grows as fast as it is read would have no end.
    let most = match (ask.length, stat.size) {
        (0, 0) => UNKNOWN_LENGTH,
        (0, size) => size.saturating_sub(ask.offset),
        (length, _) => length,
    };
    streams.replies.send(FileAnswer::Stat(stat))?;
    streams.replies.flush()?;
    file.seek(SeekFrom::Start(ask.offset)).map_err(failed)?;
    // Between files and pipes the kernel moves the bytes itself.
    let bytes = std::io::copy(&mut file.take(most), &mut streams.output).map_err(failed)?;
    Ok(FileDone { bytes, ..FileDone::default() })
}

/// All of stdin, into a file.
pub(super) fn write(ask: &WriteFile, streams: &mut Streams) -> Result<FileDone, Failure> {
    let failed = |error: std::io::Error| Failure::stream(&ask.path, &error);
    let append = match ask.how {
        Some(WriteHow::Append(())) => OFlags::APPEND,
        Some(WriteHow::Truncate(()) | WriteHow::At(_)) => OFlags::empty(),
        None => return Err(Failure::new(FileCode::Refused, &ask.path).with_errno(Errno::INVAL)),
    };
    let (mut file, stat) = opening::regular(&ask.path, OFlags::WRONLY | OFlags::CREATE | append)?;
    match ask.how {
        // Only now that it is known to be a file.
        Some(WriteHow::Truncate(())) => file.set_len(0).map_err(failed)?,
        Some(WriteHow::At(offset)) => {
            if status::describe(&stat).size < offset {
                return Err(
                    Failure::new(FileCode::Changed, &ask.path).with_detail("the file is shorter than that")
                );
            }
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        }
        Some(WriteHow::Append(())) | None => {}
    }
    if let Some(mode) = ask.mode {
        let mode = Mode::from_raw_mode(mode & 0o777);
        rustix::fs::fchmod(&file, mode).map_err(|errno| Failure::system(&ask.path, errno))?;
    }
    let bytes = std::io::copy(&mut streams.input, &mut file).map_err(failed)?;
    Ok(FileDone { bytes, ..FileDone::default() })
}
