//! The moving of bytes between a process's streams and the lanes of its channel. What comes out of a process is
//! hostile data and is only ever passed on. A reader reads no faster than its lane takes, and holds memory
//! only while bytes move.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};
use wire::{LaneReceiver, LaneSender, ReadBuffers};

use crate::ends::Ends;
use crate::{sys, terminal};

/// What a pipe holds as it is made.
const FULL_PIPE: usize = 64 * 1024;

/// What a pipe grows to once it was found full. Not before: what all pipes of a user hold is limited.
const BUSY_PIPE: usize = 256 * 1024;

/// How long the output of an ended process is waited for while something in the background holds it open.
const LINGER: Duration = Duration::from_millis(50);

/// How long the end of a stream is not told: most are closed by a process that exits, and one word for all of that
/// wakes everyone once. One that goes on with a closed stream does not wait for it.
const EXITING: Duration = Duration::from_millis(2);

/// Our end of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Arc<AsyncFd<OwnedFd>>);

impl Stream {
    fn new(end: OwnedFd, interest: Interest) -> io::Result<Self> {
        // Only this end: the process's own end blocks, as programs expect.
        ioctl_fionbio(&end, true)?;
        Ok(Self(Arc::new(sys::register(end, interest)?)))
    }

    async fn write(&self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            if let Ok(written) = ready.try_io(|end| Ok(rustix::io::write(end, &bytes)?)) {
                bytes.advance(written?);
            }
        }
        Ok(())
    }

    /// Makes room in a pipe that was found full. Refused where the user holds too much already; then it stays as
    /// it is.
    fn grow(&self) {
        let _ = fcntl_setpipe_size(self, BUSY_PIPE);
    }

    /// What may be in it unread.
    fn capacity(&self) -> usize {
        fcntl_getpipe_size(self).unwrap_or(terminal::CAPACITY)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

/// Our end of a process's input.
#[derive(Debug)]
pub(crate) enum Input {
    /// Not on the runtime before there is something to write: most processes are told nothing, and an end that is
    /// watched wakes init whenever the process closes its own.
    Pipe(OwnedFd),
    Terminal(Stream),
}

impl Input {
    fn watched(self) -> io::Result<Stream> {
        match self {
            Self::Pipe(end) => Stream::new(end, Interest::WRITABLE),
            Self::Terminal(stream) => Ok(stream),
        }
    }
}

/// Our ends of a process's streams. A terminal is input and output in one.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: Input,
    pub(crate) output: Stream,
    pub(crate) error: Option<Stream>,
}

impl TryFrom<Ends> for Streams {
    type Error = io::Error;

    fn try_from(ends: Ends) -> io::Result<Self> {
        match ends {
            Ends::Pipes { input, output, error } => Ok(Self {
                input: Input::Pipe(input),
                output: Stream::new(output, Interest::READABLE)?,
                error: Some(Stream::new(error, Interest::READABLE)?),
            }),
            Ends::Terminal(master) => {
                let terminal = Stream::new(master, Interest::READABLE | Interest::WRITABLE)?;
                Ok(Self { input: Input::Terminal(terminal.clone()), output: terminal, error: None })
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            match ready.try_io(|end| sys::read_into(end, buffer)) {
                // How a terminal says that nobody is left on its other side.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => return Poll::Ready(Ok(())),
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }
}

/// Reads a stream to its end.
#[derive(Debug)]
struct Reader {
    stream: Stream,
    buffers: ReadBuffers,
    /// Whether the pipe has been asked to grow.
    grown: bool,
}

impl Reader {
    fn new(stream: Stream) -> Self {
        Self { stream, buffers: ReadBuffers::default(), grown: false }
    }

    /// The next bytes; none at the end. Cancel-safe.
    async fn next(&mut self) -> Option<Bytes> {
        let bytes = self.buffers.read(&mut self.stream).await.ok().filter(|bytes| !bytes.is_empty())?;
        if bytes.len() >= FULL_PIPE && !self.grown {
            self.grown = true;
            self.stream.grow();
        }
        Some(bytes)
    }
}

/// Passes the bytes of `lane` to the process until the lane or the process's interest ends. Both drop what they
/// hold: the process finds the end of its input, and the client's lane does not stall.
pub(crate) async fn feed(input: Input, mut lane: LaneReceiver) {
    let Ok(Some(mut bytes)) = lane.next().await else { return };
    let Ok(stream) = input.watched() else { return };
    let mut grown = false;
    loop {
        if bytes.len() >= FULL_PIPE && !grown {
            grown = true;
            stream.grow();
        }
        if stream.write(bytes).await.is_err() {
            return;
        }
        let Ok(Some(more)) = lane.next().await else { return };
        bytes = more;
    }
}

/// Passes what the process writes to `lane`; `delivering` is dropped when the client has all of it. What still
/// writes from the background after that is read for nobody, so that it neither stalls nor dies of it.
pub(crate) async fn forward(
    stream: Stream,
    lane: LaneSender,
    ended: watch::Receiver<bool>,
    delivering: mpsc::Sender<Infallible>,
) {
    let rest = deliver(Reader::new(stream), lane, ended).await;
    drop(delivering);
    if let Some(mut reader) = rest {
        while reader.next().await.is_some() {}
    }
}

/// Nothing that the process wrote is lost: what was in the stream when it ended is at most the stream's
/// capacity, and that much is read however late it is. What others add is taken until LINGER has passed; the reader is
/// given back where they may add more.
async fn deliver(mut reader: Reader, lane: LaneSender, mut ended: watch::Receiver<bool>) -> Option<Reader> {
    let mut lane = Some(lane);
    loop {
        tokio::select! {
            biased;
            () = end_of(&mut ended) => break,
            chunk = reader.next() => match chunk {
                Some(chunk) => send(&mut lane, chunk).await,
                None => {
                    // While the kernel takes the process apart.
                    drop(reader);
                    let _ = timeout(EXITING, end_of(&mut ended)).await;
                    return None;
                }
            }
        }
    }
    let deadline = Instant::now() + LINGER;
    let mut late = 0;
    // After the deadline this still gives what is there, and only then ends.
    loop {
        let chunk = match timeout_at(deadline, reader.next()).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return None,
            Err(_) => return Some(reader),
        };
        if Instant::now() >= deadline {
            late += chunk.len();
        }
        send(&mut lane, chunk).await;
        if late >= reader.stream.capacity() {
            return Some(reader);
        }
    }
}

/// Waits until the process has ended; whoever would say so is never gone before.
async fn end_of(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}

/// Sends a chunk, or throws it away once the client is gone: the process must not stall on its last words.
async fn send(lane: &mut Option<LaneSender>, chunk: Bytes) {
    if let Some(sender) = lane
        && sender.send(chunk).await.is_err()
    {
        *lane = None;
    }
}
