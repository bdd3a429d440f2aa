//! A socket or two pipes as the byte stream of a connection. Who writes is woken only while it waits for room:
//! a socket that is watched for both directions wakes its writer each time the peer has read, for nothing, and
//! that on every message.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, writev};
use rustix::net::Shutdown;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::connection::{Connection, Incoming, Side, start, start_with};
use crate::passage::Passage;
use crate::sys::{receive, register};

/// How often it is looked where a kernel may have said nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Starts a connection over a stream socket. Must be called on the runtime, as [`start`].
///
/// Whoever asks may pass descriptors, and whoever answers takes them.
pub fn over_socket(socket: impl Into<OwnedFd>, side: Side) -> io::Result<(Connection, Incoming)> {
    let read = socket.into();
    let write = read.try_clone()?;
    let passage = Arc::new(Passage::default());
    let mut writer = Writer::new(write)?;
    match side {
        Side::Asking => {
            let read = pipe::Receiver::from_owned_fd_unchecked(read)?;
            writer.passage = Some(Arc::clone(&passage));
            Ok(start_with(read, writer, side, Some(passage)))
        }
        Side::Answering => {
            let end = register(read, Interest::READABLE)?;
            let reader = Reader { end, passage: Arc::clone(&passage), again: None };
            Ok(start_with(reader, writer, side, Some(passage)))
        }
    }
}

/// The same for whoever answers behind a kernel of its own, which has been seen to say nothing of bytes that had come:
/// where nothing is told, it is looked now and then.
pub fn over_socket_of_another_kernel(socket: impl Into<OwnedFd>) -> io::Result<(Connection, Incoming)> {
    let read = socket.into();
    let writer = Writer::new(read.try_clone()?)?;
    let passage = Arc::new(Passage::default());
    let mut again = interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = register(read, Interest::READABLE)?;
    let reader = Reader { end, passage: Arc::clone(&passage), again: Some(again) };
    Ok(start_with(reader, writer, Side::Answering, Some(passage)))
}

/// Starts a connection over a descriptor to read from and one to write to. Must be called on the runtime.
pub fn over_pipes(read: OwnedFd, write: OwnedFd, side: Side) -> io::Result<(Connection, Incoming)> {
    Ok(start(pipe::Receiver::from_owned_fd_unchecked(read)?, Writer::new(write)?, side))
}

/// The end that is read from, with what comes beside the bytes.
#[derive(Debug)]
struct Reader {
    end: AsyncFd<OwnedFd>,
    passage: Arc<Passage>,
    /// When it is looked although nothing was told.
    again: Option<Interval>,
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { end, passage, again } = self.get_mut();
        loop {
            let Poll::Ready(ready) = end.poll_read_ready(context) else {
                let Some(again) = again else { return Poll::Pending };
                ready!(again.poll_tick(context));
                match receive(end, passage, buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    received => return Poll::Ready(received),
                }
            };
            let mut ready = ready?;
            match ready.try_io(|end| receive(end, passage, buffer)) {
                // That it was less than there was room for does not say that nothing is left: it is asked until it says so.
                Ok(Ok(())) => return Poll::Ready(Ok(())),
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

/// The end that is written to.
#[derive(Debug)]
struct Writer {
    end: OwnedFd,
    /// The same end, watched, while it has no room.
    full: Option<AsyncFd<OwnedFd>>,
    passage: Option<Arc<Passage>>,
}

impl Writer {
    fn new(end: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
        Ok(Self { end, full: None, passage: None })
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match &self.passage {
            Some(passage) => passage.send(self.end.as_fd(), slices),
            None => writev(&self.end, slices),
        }
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
        loop {
            match self.write(slices) {
                Err(Errno::AGAIN) => {}
                result => {
                    self.full = None;
                    return Poll::Ready(result.map_err(io::Error::from));
                }
            }
            if self.full.is_none() {
                self.full = Some(register(self.end.try_clone()?, Interest::WRITABLE)?);
            }
            let Some(full) = &self.full else { return Poll::Pending };
            let mut ready = ready!(full.poll_write_ready(context))?;
            // It is looked at again after the next try.
            ready.clear_ready();
        }
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
