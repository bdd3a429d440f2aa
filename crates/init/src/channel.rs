//! The control channel as init finds it: one socket on descriptors 0 and 1, or two pipes. Whatever it is, it is
//! taken off those numbers before anything is started, so that no process can inherit it.

use std::io;
use std::os::fd::{IntoRawFd as _, OwnedFd};

use rustix::fs::{FileType, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};
use wire::{Connection, Incoming, Side};

use crate::arguments::Kernel;

/// The first number that is not one of the standard three.
const FIRST_FREE: i32 = 3;

/// The channel's descriptors, away from the standard numbers and closed on exec.
#[derive(Debug)]
pub(crate) enum Descriptors {
    Socket(OwnedFd),
    Pipes { read: OwnedFd, write: OwnedFd },
}

impl Descriptors {
    /// Moves the channel away from descriptors 0 and 1, and leaves there what is on 2: where init complains.
    pub(crate) fn take() -> io::Result<Self> {
        let read = fcntl_dupfd_cloexec(stdin(), FIRST_FREE)?;
        let descriptors = if FileType::from_raw_mode(fstat(&read)?.st_mode) == FileType::Socket {
            // Descriptor 1 is the same socket. gVisor's kernel takes the two for two, and the end of the one would be the
            // end of the socket; so it stays open, away from that number, as long as init does.
            let _ = fcntl_dupfd_cloexec(stdout(), FIRST_FREE)?.into_raw_fd();
            Self::Socket(read)
        } else {
            Self::Pipes { read, write: fcntl_dupfd_cloexec(stdout(), FIRST_FREE)? }
        };
        dup2_stdin(stderr())?;
        dup2_stdout(stderr())?;
        Ok(descriptors)
    }

    /// Begins to answer. Must be called on the runtime.
    pub(crate) fn connect(self, kernel: Kernel) -> io::Result<(Connection, Incoming)> {
        match (self, kernel) {
            (Self::Socket(socket), Kernel::Host) => wire::over_socket(socket, Side::Answering),
            (Self::Socket(socket), Kernel::Own) => wire::over_socket_of_another_kernel(socket),
            (Self::Pipes { read, write }, _) => wire::over_pipes(read, write, Side::Answering),
        }
    }
}
