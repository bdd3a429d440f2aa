//! Contents that the kernel moves out of a pipe by itself: one copy instead of two.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// As much as is on its way at once.
const PIPE: usize = 256 * 1024;

/// A pipe that is read from, and whose bytes can be had without being read.
pub trait Pour: Read {
    /// Moves at most so many bytes into a pipe that is empty, as soon as there are any. Zero is the end of the stream.
    fn pour(&mut self, into: BorrowedFd<'_>, most: usize) -> io::Result<usize>;
}

impl Pour for &File {
    fn pour(&mut self, into: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        again(|| splice(*self, None, into, None, most, SpliceFlags::MOVE))
    }
}

fn again(mut act: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match act() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// A pipe of our own between the one that is read and the file. Whoever fills that one can go on meanwhile: the kernel
/// holds it for as long as it moves its bytes into a file.
#[derive(Debug)]
pub(super) struct Funnel {
    reading: OwnedFd,
    writing: OwnedFd,
}

impl Funnel {
    pub(super) fn new() -> io::Result<Self> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
        // Where it is not to be had, it takes more turns.
        let _ = fcntl_setpipe_size(&writing, PIPE);
        Ok(Self { reading, writing })
    }

    /// Moves exactly `size` bytes into a file.
    pub(super) fn pour(
        &self,
        file: &File,
        mut size: u64,
        mut pour: impl FnMut(BorrowedFd<'_>, usize) -> io::Result<usize>,
    ) -> io::Result<()> {
        while size > 0 {
            let most = usize::try_from(size).unwrap_or(usize::MAX).min(PIPE);
            let count = pour(self.writing.as_fd(), most)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.empty(file, count)?;
            size -= count as u64;
        }
        Ok(())
    }

    fn empty(&self, file: &File, mut count: usize) -> io::Result<()> {
        while count > 0 {
            match again(|| splice(&self.reading, None, file, None, count, SpliceFlags::MOVE)) {
                // A file system that does not do this.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                    return self.copy(file, count);
                }
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(moved) => count -= moved,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn copy(&self, mut file: &File, count: usize) -> io::Result<()> {
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while filled < count {
            filled += again(|| rustix::io::read(&self.reading, &mut bytes[filled..]))?;
        }
        io::Write::write_all(&mut file, &bytes)
    }
}
