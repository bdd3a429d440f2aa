//! The two sides of a process's streams, as they are made: three pipes or a terminal. They are made by the
//! spawner's thread under the ids of the process, so that it owns them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};
use wire::WindowSize;

use crate::terminal;

/// One side of a process's streams.
#[derive(Debug)]
pub(crate) enum Ends {
    Pipes { input: OwnedFd, output: OwnedFd, error: OwnedFd },
    Terminal(OwnedFd),
}

impl Ends {
    /// What becomes descriptors 0, 1 and 2.
    pub(crate) fn descriptors(&self) -> [RawFd; 3] {
        match self {
            Self::Pipes { input, output, error } => [input, output, error].map(|end| end.as_raw_fd()),
            Self::Terminal(end) => [end.as_raw_fd(); 3],
        }
    }
}

/// Both sides of a process's streams.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) inside: Ends,
    pub(crate) outside: Ends,
}

impl Pair {
    /// A terminal of this size, or pipes. What is given as its output takes the place of one of them, whose other end
    /// then has nothing more to say.
    pub(crate) fn new(terminal: Option<WindowSize>, given: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        if let Some(size) = terminal {
            let (master, slave) = terminal::make(size)?;
            return Ok(Self { inside: Ends::Terminal(slave), outside: Ends::Terminal(master) });
        }
        let (input, feeding) = pipe_with(PipeFlags::CLOEXEC)?;
        let (reading, output) = pipe_with(PipeFlags::CLOEXEC)?;
        let output = given.map_or(Ok(output), |given| given.try_clone_to_owned())?;
        let (reading_error, error) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            inside: Ends::Pipes { input, output, error },
            outside: Ends::Pipes { input: feeding, output: reading, error: reading_error },
        })
    }
}
