//! A connection over one byte stream: what starts it, opens and takes channels, and ends it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use crate::channel::Channel;
use crate::error::{ConnectionEnd, ConnectionError};
use crate::passage::Passage;
use crate::reader;
use crate::state::State;
use crate::writer;

/// Which end of the stream this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that mostly asks; its channels have odd ids.
    Asking,
    /// The side that mostly answers; its channels have even ids.
    Answering,
}

impl Side {
    pub(crate) fn first_id(self) -> u32 {
        match self {
            Self::Asking => 1,
            Self::Answering => 2,
        }
    }

    /// Whether this side opens channels with such ids.
    pub(crate) fn owns(self, id: u32) -> bool {
        id % 2 == self.first_id() % 2
    }
}

/// What the two tasks and every handle of a connection share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    ended: Notify,
    /// The peer has said something, or never will.
    heard: Notify,
    passage: Option<Arc<Passage>>,
}

impl Shared {
    /// The state has no invariant that a panic between two statements could break for good, so poison is ignored.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How descriptors go and come, where the stream carries any.
    pub(crate) fn passage(&self) -> Option<&Passage> {
        self.passage.as_deref()
    }

    pub(crate) fn end(&self, end: ConnectionEnd) {
        self.state().end(end);
        self.ended.notify_waiters();
        self.heard.notify_waiters();
    }

    /// The peer has said something.
    pub(crate) fn hear(&self) {
        if !self.state().hear() {
            self.heard.notify_waiters();
        }
    }
}

/// Starts a connection over `read` and `write`. Its two tasks run on the current tokio runtime, which must have
/// its timer enabled, until the peer ends the stream, breaks the protocol or an error of the stream ends it.
pub fn start<R, W>(read: R, write: W, side: Side) -> (Connection, Incoming)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    start_with(read, write, side, None)
}

/// The same over a stream that may carry descriptors.
pub(crate) fn start_with<R, W>(
    read: R,
    write: W,
    side: Side,
    passage: Option<Arc<Passage>>,
) -> (Connection, Incoming)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(Shared {
        state: Mutex::new(State::new(side)),
        ended: Notify::new(),
        heard: Notify::new(),
        passage,
    });
    let writer = tokio::spawn(writer::run(write, Arc::clone(&shared)));
    let reading = Arc::clone(&shared);
    tokio::spawn(async move {
        let end = reader::run(read, &reading).await;
        reading.end(end);
        // It may wait for a peer that does not read; without it the stream would stay open.
        writer.abort();
    });
    (Connection { shared: Arc::clone(&shared) }, Incoming { shared })
}

/// A running connection. Dropping it ends nothing; [`Connection::shutdown`] does.
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    /// Opens a channel. Nothing waits for the peer: it may be written to at once.
    pub fn open(&self) -> Result<Channel, ConnectionError> {
        let id = self.shared.state().open()?;
        Ok(Channel::new(&self.shared, id))
    }

    /// Whether this side has ever opened a channel.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.shared.state().has_opened()
    }

    /// Whether the peer has ever said anything.
    #[must_use]
    pub fn has_heard(&self) -> bool {
        self.shared.state().has_heard()
    }

    /// Waits for the first word of the peer, whatever it is; `false` where the connection is over without one.
    pub async fn heard(&self) -> bool {
        loop {
            let heard = self.shared.heard.notified();
            {
                let state = self.shared.state();
                if state.has_heard() || state.ended().is_some() {
                    return state.has_heard();
                }
            }
            heard.await;
        }
    }

    /// Waits until the connection is over and says why.
    pub async fn closed(&self) -> ConnectionEnd {
        loop {
            let ended = self.shared.ended.notified();
            if let Some(end) = self.shared.state().ended() {
                return end.clone();
            }
            ended.await;
        }
    }

    /// Writes what is queued and then closes our direction of the stream, which the peer takes as the end of the
    /// connection. Nothing can be sent any more.
    pub fn shutdown(&self) {
        self.shared.state().shut_down();
    }
}

/// The channels that the peer opens. A channel that waits here holds what the peer sends on it, up to its windows, so
/// where none is expected this must be dropped, not kept unread: dropping refuses all that it did not give out.
#[derive(Debug)]
pub struct Incoming {
    shared: Arc<Shared>,
}

impl Incoming {
    /// The next channel, or none when the connection is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Channel> {
        let id = poll_fn(|context| self.shared.state().poll_incoming(context)).await?;
        Some(Channel::new(&self.shared, id))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.shared.state().drop_incoming();
    }
}
