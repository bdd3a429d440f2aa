//! The protocol without input and output: every transition of a connection, as methods under one lock. It takes
//! frames from the hostile peer on one side and calls from our own code on the other.
//!
//! What the peer can make this hold is bounded: at most [`CHANNEL_LIMIT`] channels of its own, a window of data
//! per lane that is read here, and per channel one open, one close, and per lane one end and one credit in
//! the queue. A channel counts until both sides have said Close, and ours counts as said when it is written.

mod lanes;
mod peer;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::connection::Side;
use crate::error::{ConnectionEnd, ConnectionError, LaneError, NoDescriptorLeft};
use crate::flow::{Inbound, Outbound};
use crate::frame::{CHANNEL_LIMIT, Kind, LaneName};
use queue::Queued;

/// One channel as this side sees it.
#[derive(Debug)]
struct ChannelState {
    outbound: [Outbound; LaneName::COUNT],
    inbound: [Inbound; LaneName::COUNT],
    /// Receivers of ours that are still there; the data they have not read outlives the channel.
    receivers: usize,
    /// Our Close is queued; nothing is queued after it.
    closed_here: bool,
    /// Our Close is written.
    close_written: bool,
    /// The peer's Close has come.
    closed_there: bool,
    closed: Arc<Notify>,
    /// What the peer has passed and nobody has taken; it may have been lost on the way.
    passed: Option<Option<OwnedFd>>,
}

impl Default for ChannelState {
    fn default() -> Self {
        Self {
            outbound: std::array::from_fn(|_| Outbound::new()),
            inbound: std::array::from_fn(|_| Inbound::new()),
            receivers: LaneName::COUNT,
            closed_here: false,
            close_written: false,
            closed_there: false,
            closed: Arc::new(Notify::new()),
            passed: None,
        }
    }
}

impl ChannelState {
    fn is_over(&self) -> bool {
        self.close_written && self.closed_there
    }

    fn wake_all(&mut self) {
        self.inbound.iter_mut().for_each(Inbound::wake);
        self.wake_senders();
        self.closed.notify_waiters();
    }

    fn wake_senders(&mut self) {
        self.outbound.iter_mut().filter_map(|lane| lane.waiting.take()).for_each(Waker::wake);
    }
}

/// A connection's whole state.
#[derive(Debug)]
pub(crate) struct State {
    side: Side,
    end: Option<ConnectionEnd>,
    /// Something came from the peer.
    heard: bool,
    /// No frame is queued any more: shut down, or writing failed.
    write_over: bool,
    /// Boxed, because a node of the map has room for eleven.
    channels: BTreeMap<u32, Box<ChannelState>>,
    next_id: Option<u32>,
    highest_seen: u32,
    open_by_us: usize,
    open_by_peer: usize,
    queue: VecDeque<Queued>,
    writer: Option<Waker>,
    incoming: VecDeque<u32>,
    incoming_waiting: Option<Waker>,
    incoming_gone: bool,
}

impl State {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            end: None,
            heard: false,
            write_over: false,
            channels: BTreeMap::new(),
            next_id: Some(side.first_id()),
            highest_seen: 0,
            open_by_us: 0,
            open_by_peer: 0,
            queue: VecDeque::new(),
            writer: None,
            incoming: VecDeque::new(),
            incoming_waiting: None,
            incoming_gone: false,
        }
    }

    /// The stream gives no more. The first reason stays.
    pub(crate) fn end(&mut self, end: ConnectionEnd) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.stop_writing();
        self.channels.values_mut().for_each(|channel| channel.wake_all());
        self.channels.retain(|_, channel| channel.receivers > 0);
        self.incoming_waiting.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn ended(&self) -> Option<&ConnectionEnd> {
        self.end.as_ref()
    }

    /// Something came from the peer. Says whether that was known.
    pub(crate) fn hear(&mut self) -> bool {
        std::mem::replace(&mut self.heard, true)
    }

    pub(crate) fn has_heard(&self) -> bool {
        self.heard
    }

    pub(crate) fn has_opened(&self) -> bool {
        self.next_id != Some(self.side.first_id())
    }

    pub(crate) fn open(&mut self) -> Result<u32, ConnectionError> {
        if self.write_over {
            return Err(ConnectionError::Over);
        }
        if self.open_by_us >= CHANNEL_LIMIT {
            return Err(ConnectionError::TooManyChannels);
        }
        let id = self.next_id.ok_or(ConnectionError::IdsExhausted)?;
        self.next_id = id.checked_add(2);
        self.open_by_us += 1;
        self.channels.insert(id, Box::default());
        self.push(id, Kind::Open, LaneName::Messages, Bytes::new());
        Ok(id)
    }

    /// The next channel of the peer; what it opened before the connection ended is still given out.
    pub(crate) fn poll_incoming(&mut self, context: &Context<'_>) -> Poll<Option<u32>> {
        if let Some(id) = self.incoming.pop_front() {
            return Poll::Ready(Some(id));
        }
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        self.incoming_waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Refuses what waits and whatever the peer opens from now on.
    pub(crate) fn drop_incoming(&mut self) {
        self.incoming_gone = true;
        while let Some(id) = self.incoming.pop_front() {
            self.refuse(id);
        }
    }

    /// Nobody here wants this channel.
    fn refuse(&mut self, id: u32) {
        for lane in [LaneName::Messages, LaneName::In, LaneName::Out, LaneName::Err] {
            self.discard(id, lane);
        }
        self.close(id);
    }

    /// Closes the channel after what is queued for it.
    pub(crate) fn close(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.closed_here = true;
        channel.passed = None;
        channel.wake_all();
        self.push(id, Kind::Close, LaneName::Messages, Bytes::new());
    }

    /// Sends a descriptor for the channel.
    pub(crate) fn pass(&mut self, id: u32, descriptor: OwnedFd) -> Result<(), LaneError> {
        if self.side == Side::Answering {
            return Err(LaneError::NoPassage);
        }
        if self.write_over {
            return Err(LaneError::Lost);
        }
        let open = self.channels.get(&id).is_some_and(|c| !c.closed_here && !c.closed_there);
        if !open {
            return Err(LaneError::Closed);
        }
        self.push_descriptor(id, descriptor);
        Ok(())
    }

    /// What the peer has passed, once.
    pub(crate) fn take_passed(&mut self, id: u32) -> Result<Option<OwnedFd>, NoDescriptorLeft> {
        let passed = self.channels.get_mut(&id).and_then(|channel| channel.passed.take());
        passed.map(|descriptor| descriptor.ok_or(NoDescriptorLeft)).transpose()
    }

    /// What resolves when the peer closes this channel, unless it is closed already.
    pub(crate) fn until_closed(&self, id: u32) -> Option<Arc<Notify>> {
        let channel = self.channels.get(&id)?;
        (self.end.is_none() && !channel.closed_there).then(|| Arc::clone(&channel.closed))
    }

    /// One side's Close has come or gone: where it was the second, the channel counts no more.
    fn count_out(&mut self, id: u32) {
        if !self.channels.get(&id).is_some_and(|channel| channel.is_over()) {
            return;
        }
        let open = if self.side.owns(id) { &mut self.open_by_us } else { &mut self.open_by_peer };
        *open = open.saturating_sub(1);
        self.settle(id);
    }

    /// Forgets a channel that is over, once nobody here reads what it left.
    fn settle(&mut self, id: u32) {
        let over = self.end.is_some();
        if self.channels.get(&id).is_some_and(|c| c.receivers == 0 && (over || c.is_over())) {
            self.channels.remove(&id);
        }
    }

    /// Bytes that came and were not read.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.channels.values().flat_map(|channel| &channel.inbound).map(Inbound::held).sum()
    }
}
