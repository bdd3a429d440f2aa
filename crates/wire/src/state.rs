//! The protocol without input and output: every transition of a connection, as methods under one lock. It takes
//! frames from the hostile peer on one side and calls from our own code on the other.
//!
//! What the peer can make this hold is bounded: at most [`CHANNEL_LIMIT`] channels of its own, a window of data
//! per lane that is read here, and per channel one open, one close, and per lane one end and one credit in
//! the queue. A channel counts until both sides have said Close, and ours counts as said when it is written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use tokio::sync::Notify;

use crate::connection::Side;
use crate::error::{ConnectionEnd, ConnectionError, LaneError, ProtocolError};
use crate::flow::{Inbound, Outbound};
use crate::frame::{CHANNEL_LIMIT, Header, Kind, LaneName, PAYLOAD_LIMIT};
use crate::writer::Batch;

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
}

impl ChannelState {
    fn new() -> Self {
        Self {
            outbound: std::array::from_fn(|_| Outbound::new()),
            inbound: std::array::from_fn(|_| Inbound::new()),
            receivers: LaneName::COUNT,
            closed_here: false,
            close_written: false,
            closed_there: false,
            closed: Arc::new(Notify::new()),
        }
    }

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

/// A frame that waits to be written. A credit's payload is filled in when it is.
#[derive(Debug)]
struct Queued {
    channel: u32,
    kind: Kind,
    lane: LaneName,
    payload: Bytes,
}

/// A connection's whole state.
#[derive(Debug)]
pub(crate) struct State {
    side: Side,
    end: Option<ConnectionEnd>,
    /// No frame is queued any more: shut down, or writing failed.
    write_over: bool,
    channels: BTreeMap<u32, ChannelState>,
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

    // From the peer.

    /// Takes one frame of the peer.
    pub(crate) fn receive(&mut self, header: Header, mut payload: Bytes) -> Result<(), ProtocolError> {
        let id = header.channel;
        if header.kind == Kind::Open {
            return self.receive_open(id);
        }
        let channel = self.channels.get_mut(&id).ok_or(ProtocolError::UnknownChannel(id))?;
        if channel.is_over() {
            return Err(ProtocolError::UnknownChannel(id));
        }
        if channel.closed_there {
            return Err(ProtocolError::AfterEnd(id));
        }
        let lane = header.lane.index();
        match header.kind {
            Kind::Open => {}
            Kind::Data => {
                channel.inbound[lane].accept(id, payload)?;
                self.return_credit(id, header.lane);
            }
            Kind::Credit => channel.outbound[lane].grant(id, payload.get_u32_le())?,
            Kind::End => channel.inbound[lane].end(id)?,
            Kind::Close => {
                channel.closed_there = true;
                channel.wake_all();
                self.count_out(id);
            }
        }
        Ok(())
    }

    fn receive_open(&mut self, id: u32) -> Result<(), ProtocolError> {
        if self.side.owns(id) || id <= self.highest_seen {
            return Err(ProtocolError::BadChannelId(id));
        }
        if self.open_by_peer >= CHANNEL_LIMIT {
            return Err(ProtocolError::TooManyChannels);
        }
        self.highest_seen = id;
        self.open_by_peer += 1;
        self.channels.insert(id, ChannelState::new());
        if self.incoming_gone {
            self.refuse(id);
        } else {
            self.incoming.push_back(id);
            if let Some(waker) = self.incoming_waiting.take() {
                waker.wake();
            }
        }
        Ok(())
    }

    /// Nobody here wants this channel.
    fn refuse(&mut self, id: u32) {
        for lane in [LaneName::Messages, LaneName::In, LaneName::Out, LaneName::Err] {
            self.discard(id, lane);
        }
        self.close(id);
    }

    /// The stream gives no more. The first reason stays.
    pub(crate) fn end(&mut self, end: ConnectionEnd) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.stop_writing();
        self.channels.values_mut().for_each(ChannelState::wake_all);
        self.channels.retain(|_, channel| channel.receivers > 0);
        self.incoming_waiting.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn ended(&self) -> Option<&ConnectionEnd> {
        self.end.as_ref()
    }

    // From our own side.

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
        self.channels.insert(id, ChannelState::new());
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

    /// Queues as much of `bytes` as there is credit for; ready when all of it is queued.
    pub(crate) fn poll_send(
        &mut self,
        context: &Context<'_>,
        (id, lane): (u32, LaneName),
        bytes: &mut Bytes,
    ) -> Poll<Result<(), LaneError>> {
        loop {
            if self.write_over {
                return Poll::Ready(Err(LaneError::Lost));
            }
            let Some(channel) = self.channels.get_mut(&id).filter(|c| !c.closed_here && !c.closed_there)
            else {
                return Poll::Ready(Err(LaneError::Closed));
            };
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let outbound = &mut channel.outbound[lane.index()];
            let wanted = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(PAYLOAD_LIMIT);
            let taken = outbound.take(wanted);
            if taken == 0 {
                outbound.waiting = Some(context.waker().clone());
                return Poll::Pending;
            }
            let payload = bytes.split_to(taken as usize);
            self.push(id, Kind::Data, lane, payload);
        }
    }

    /// No more will be sent on this lane.
    pub(crate) fn finish(&mut self, id: u32, lane: LaneName) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let outbound = &mut channel.outbound[lane.index()];
        if outbound.finished || channel.closed_here || channel.closed_there {
            return;
        }
        outbound.finished = true;
        self.push(id, Kind::End, lane, Bytes::new());
    }

    /// The next bytes that came on this lane.
    pub(crate) fn poll_receive(
        &mut self,
        context: &Context<'_>,
        id: u32,
        lane: LaneName,
    ) -> Poll<Result<Option<Bytes>, LaneError>> {
        let lost = self.end.is_some();
        let Some(channel) = self.channels.get_mut(&id) else { return Poll::Ready(Err(LaneError::Closed)) };
        let inbound = &mut channel.inbound[lane.index()];
        if let Some(chunk) = inbound.take() {
            self.return_credit(id, lane);
            return Poll::Ready(Ok(Some(chunk)));
        }
        if inbound.ended {
            return Poll::Ready(Ok(None));
        }
        if channel.closed_here || channel.closed_there {
            return Poll::Ready(Err(LaneError::Closed));
        }
        if lost {
            return Poll::Ready(Err(LaneError::Lost));
        }
        inbound.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// The receiver of this lane is gone.
    pub(crate) fn discard(&mut self, id: u32, lane: LaneName) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.receivers -= 1;
        channel.inbound[lane.index()].discard();
        self.return_credit(id, lane);
        self.settle(id);
    }

    /// Closes the channel after what is queued for it.
    pub(crate) fn close(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.closed_here = true;
        channel.wake_all();
        self.push(id, Kind::Close, LaneName::Messages, Bytes::new());
    }

    /// What resolves when the peer closes this channel, unless it is closed already.
    pub(crate) fn until_closed(&self, id: u32) -> Option<Arc<Notify>> {
        let channel = self.channels.get(&id)?;
        (self.end.is_none() && !channel.closed_there).then(|| Arc::clone(&channel.closed))
    }

    fn return_credit(&mut self, id: u32, lane: LaneName) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let closed = channel.closed_here || channel.closed_there;
        if !closed && channel.inbound[lane.index()].wants_credit() {
            self.push(id, Kind::Credit, lane, Bytes::new());
        }
    }

    /// One side's Close has come or gone: where it was the second, the channel counts no more.
    fn count_out(&mut self, id: u32) {
        if !self.channels.get(&id).is_some_and(ChannelState::is_over) {
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

    // To the writer.

    fn push(&mut self, channel: u32, kind: Kind, lane: LaneName, payload: Bytes) {
        if self.write_over {
            return;
        }
        self.queue.push_back(Queued { channel, kind, lane, payload });
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    /// Lets the writer finish what is queued and queues no more.
    pub(crate) fn shut_down(&mut self) {
        self.write_over = true;
        self.channels.values_mut().for_each(ChannelState::wake_senders);
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    /// What is queued cannot be written any more.
    pub(crate) fn stop_writing(&mut self) {
        self.queue = VecDeque::new();
        self.shut_down();
    }

    /// Fills `batch` with the next frames; with none where all is written and no more will come.
    pub(crate) fn poll_batch(&mut self, context: &Context<'_>, batch: &mut Batch) -> Poll<()> {
        while !batch.is_full() {
            let Some(queued) = self.queue.pop_front() else { break };
            if let Some((header, payload)) = self.prepare(queued) {
                batch.push(header, payload);
            }
        }
        if batch.is_empty() && !self.write_over {
            self.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The frame as it is written now; none where the peer has no use for it any more.
    fn prepare(&mut self, queued: Queued) -> Option<(Header, Bytes)> {
        let Queued { channel: id, kind, lane, mut payload } = queued;
        let channel = self.channels.get_mut(&id)?;
        match kind {
            Kind::Close => {
                channel.close_written = true;
                self.count_out(id);
            }
            // The peer has closed the channel: it hears nothing but our own Close.
            _ if channel.closed_there => return None,
            Kind::Credit => {
                let amount = channel.inbound[lane.index()].take_credit();
                payload = Bytes::copy_from_slice(&amount.to_le_bytes());
            }
            Kind::Open | Kind::Data | Kind::End => {}
        }
        // Every payload was cut to the limit when it was queued.
        let length = payload.len() as u32;
        Some((Header { channel: id, kind, lane, length }, payload))
    }
}
