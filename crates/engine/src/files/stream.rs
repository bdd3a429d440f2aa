//! Our end of the pipe that an archive goes through. The other end is inside, where it may be kept open, left unread or
//! filled for ever: whoever waits here is let go when the conversation about it is over.

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::Pour;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, splice};

/// So that the two sides wake each other less often, and what is between them still is in the processor's own memory.
/// Whoever packs a large file inside makes it larger, as only its pages go through.
const PIPE: usize = 256 * 1024;

/// Our end.
#[derive(Debug)]
pub(super) struct Stream {
    pipe: OwnedFd,
    /// Says that it is over by having nobody at its other end.
    over: OwnedFd,
    /// Once it is over: what may still be in the pipe.
    left: Option<usize>,
    /// Who counts what goes through.
    counts: [Arc<AtomicU64>; 2],
}

/// As long as this is there, the other end is waited for.
#[derive(Debug)]
pub(super) struct Over(#[expect(dead_code, reason = "it is closed by being dropped")] PipeWriter);

impl Stream {
    /// One to read from, and the end to be written to.
    pub(super) fn to_read(counts: [Arc<AtomicU64>; 2]) -> io::Result<(Self, OwnedFd, Over)> {
        let (ours, theirs) = io::pipe()?;
        Self::new(ours.into(), theirs.into(), counts)
    }

    /// One to write to, and the end to be read from.
    pub(super) fn to_write(counts: [Arc<AtomicU64>; 2]) -> io::Result<(Self, OwnedFd, Over)> {
        let (theirs, ours) = io::pipe()?;
        Self::new(ours.into(), theirs.into(), counts)
    }

    fn new(pipe: OwnedFd, theirs: OwnedFd, counts: [Arc<AtomicU64>; 2]) -> io::Result<(Self, OwnedFd, Over)> {
        // This end alone: the other one blocks, as whoever gets it expects.
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        // Where it is not to be had, they wake each other more often.
        let _ = fcntl_setpipe_size(&pipe, PIPE);
        let (over, guard) = io::pipe()?;
        Ok((Self { pipe, over: over.into(), left: None, counts }, theirs, Over(guard)))
    }

    /// Does something with the pipe when it can be done. None where it cannot, and it is over.
    fn when(
        &mut self,
        flags: PollFlags,
        mut act: impl FnMut(&OwnedFd) -> Result<usize, Errno>,
    ) -> io::Result<Option<usize>> {
        self.look(PollFlags::empty(), Some(&Timespec::default()))?;
        while self.left != Some(0) {
            match act(&self.pipe) {
                Ok(count) => {
                    self.left = self.left.map(|left| left.saturating_sub(count));
                    for total in &self.counts {
                        total.fetch_add(count as u64, Ordering::Relaxed);
                    }
                    return Ok(Some(count));
                }
                Err(Errno::AGAIN) if self.left.is_some() => break,
                Err(Errno::AGAIN) => self.look(flags, None)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Looks whether it is over, and waits for that or for the pipe.
    fn look(&mut self, flags: PollFlags, patience: Option<&Timespec>) -> io::Result<()> {
        let mut ends = [PollFd::new(&self.over, PollFlags::empty()), PollFd::new(&self.pipe, flags)];
        match poll(&mut ends, patience) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if self.left.is_none() && ends[0].revents().contains(PollFlags::HUP) {
            self.left = Some(fcntl_getpipe_size(&self.pipe)?);
        }
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.when(PollFlags::IN, |pipe| rustix::io::read(pipe, &mut *buffer))?;
        Ok(count.unwrap_or(0))
    }
}

impl Pour for Stream {
    fn pour(&mut self, into: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let count = self.when(PollFlags::IN, |pipe| splice(pipe, None, into, None, most, flags))?;
        Ok(count.unwrap_or(0))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.when(PollFlags::OUT, |pipe| rustix::io::write(pipe, bytes))?;
        count.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An end that is held open by somebody who does nothing.
    #[test]
    fn nobody_waits_longer_than_it_is_talked_about() {
        let (mut stream, theirs, over) = Stream::to_read(<[_; 2]>::default()).unwrap();
        rustix::io::write(&theirs, b"all").unwrap();
        drop(over);
        let mut bytes = Vec::new();
        assert_eq!(stream.read_to_end(&mut bytes).unwrap(), 3);

        let (mut stream, theirs, over) = Stream::to_write(<[_; 2]>::default()).unwrap();
        let waiting = std::thread::spawn(move || {
            loop {
                if let Err(error) = stream.write(&[0; 4096]) {
                    return error.kind();
                }
            }
        });
        drop(over);
        assert_eq!(waiting.join().unwrap(), io::ErrorKind::BrokenPipe);
        drop(theirs);
    }

    /// Somebody inside has the other end, and writes for ever.
    #[test]
    fn what_comes_after_all_has_an_end() {
        let (mut stream, theirs, over) = Stream::to_read(<[_; 2]>::default()).unwrap();
        let writing = std::thread::spawn(move || {
            let mut theirs = std::fs::File::from(theirs);
            while theirs.write_all(&[7; 4096]).is_ok() {}
        });
        drop(over);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert!(bytes.len() <= 2 * PIPE, "{} bytes", bytes.len());
        drop(stream);
        writing.join().unwrap();
    }

    #[test]
    fn what_went_through_is_counted_and_ends_with_its_end() {
        let moved = Arc::<AtomicU64>::default();
        let (mut stream, theirs, _over) = Stream::to_read([Arc::clone(&moved), Arc::default()]).unwrap();
        std::thread::spawn(move || std::fs::File::from(theirs).write_all(&[7; 1_000_000]).unwrap());
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), moved.load(Ordering::Relaxed)), (1_000_000, 1_000_000));
    }
}
