//! Where an archive goes. Into a pipe the kernel moves large files without copying them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

/// As large as anybody may make a pipe.
const PIPE: usize = 1024 * 1024;

/// Where an archive goes.
pub enum Output<'a> {
    /// Into a pipe.
    Pipe(BorrowedFd<'a>),
    /// To anything else.
    Writer(&'a mut dyn Write),
}

impl Output<'_> {
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let pipe = match self {
            Self::Pipe(pipe) => pipe,
            Self::Writer(writer) => return writer.write_all(bytes),
        };
        while !bytes.is_empty() {
            match rustix::io::write(*pipe, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Pipe(_) => Ok(()),
            Self::Writer(writer) => writer.flush(),
        }
    }

    /// Moves up to `most` bytes of a file from where it stands, without copying. Gives how many were moved: fewer where
    /// the file ends, or where the kernel does not do this from such a file or into such an output.
    pub(super) fn move_in(&self, file: &File, most: u64) -> io::Result<u64> {
        let Self::Pipe(pipe) = self else { return Ok(0) };
        // So that the two sides wake each other less often; where it is not to be had, they do.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
        let mut moved = 0;
        while moved < most {
            let length = usize::try_from(most - moved).unwrap_or(usize::MAX);
            match rustix::pipe::splice(file, None, pipe, None, length, SpliceFlags::MOVE) {
                Ok(0) | Err(Errno::INVAL) => break,
                Ok(count) => moved += count as u64,
                Err(Errno::INTR) => {}
                // As the reader of the pipe has gone; the next write would say the same.
                Err(Errno::PIPE) => return Err(Errno::PIPE.into()),
                // It may be the file that cannot be read. Who reads it in the plain way will see.
                Err(_) => break,
            }
        }
        Ok(moved)
    }
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pipe(_) => "Pipe",
            Self::Writer(_) => "Writer",
        })
    }
}
