//! A socket or two pipes as the byte stream of a connection. Who writes is woken only while it waits for room:
//! a socket that is watched for both directions wakes its writer each time the peer has read, for nothing, and
//! that on every message.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, writev};
use rustix::net::Shutdown;
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;

use crate::connection::{Connection, Incoming, Side, start};

/// Starts a connection over a stream socket. Must be called on the runtime, as [`start`].
pub fn over_socket(socket: impl Into<OwnedFd>, side: Side) -> io::Result<(Connection, Incoming)> {
    let read = socket.into();
    let write = read.try_clone()?;
    over_pipes(read, write, side)
}

/// Starts a connection over a descriptor to read from and one to write to. Must be called on the runtime.
pub fn over_pipes(read: OwnedFd, write: OwnedFd, side: Side) -> io::Result<(Connection, Incoming)> {
    // "Unchecked": it is watched for reading and read, which serves a socket as it serves a pipe.
    let read = pipe::Receiver::from_owned_fd_unchecked(read)?;
    Ok(start(read, Writer::new(write)?, side))
}

/// The end that is written to.
#[derive(Debug)]
struct Writer {
    end: OwnedFd,
    /// The same end, watched, while it has no room.
    full: Option<pipe::Sender>,
}

impl Writer {
    fn new(end: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
        Ok(Self { end, full: None })
    }

    /// Tells the peer that nothing more comes. A pipe tells it when it is closed.
    fn finish(&self) {
        let _ = rustix::net::shutdown(&self.end, Shutdown::Write);
    }
}

impl AsyncWrite for Writer {
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.full.is_none() {
            match writev(&self.end, slices) {
                Err(Errno::AGAIN) => {
                    self.full = Some(pipe::Sender::from_owned_fd_unchecked(self.end.try_clone()?)?);
                }
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
        let Some(full) = &mut self.full else { return Poll::Pending };
        let written = ready!(Pin::new(full).poll_write_vectored(context, slices));
        self.full = None;
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Writer {
    /// The reading side may hold the same socket open for longer.
    fn drop(&mut self) {
        self.finish();
    }
}
