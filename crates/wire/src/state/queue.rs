//! The frames that wait to be written, in the order in which they were asked for across all lanes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::State;
use crate::frame::{Header, Kind, LaneName};
use crate::writer::Batch;

/// A queue that grew larger than this is given back when it is empty.
const KEPT: usize = 64;

/// A frame that waits to be written. A credit's payload is filled in when it is.
#[derive(Debug)]
pub(super) struct Queued {
    channel: u32,
    kind: Kind,
    lane: LaneName,
    payload: Bytes,
    descriptor: Option<OwnedFd>,
}

impl State {
    pub(super) fn push(&mut self, channel: u32, kind: Kind, lane: LaneName, payload: Bytes) {
        self.queue(Queued { channel, kind, lane, payload, descriptor: None });
    }

    pub(super) fn push_descriptor(&mut self, channel: u32, descriptor: OwnedFd) {
        let (kind, lane, payload) = (Kind::Pass, LaneName::Messages, Bytes::new());
        self.queue(Queued { channel, kind, lane, payload, descriptor: Some(descriptor) });
    }

    fn queue(&mut self, queued: Queued) {
        if self.write_over {
            return;
        }
        self.queue.push_back(queued);
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    /// Lets the writer finish what is queued and queues no more.
    pub(crate) fn shut_down(&mut self) {
        self.write_over = true;
        self.channels.values_mut().for_each(|channel| channel.wake_senders());
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
            if let Some((header, payload, descriptor)) = self.prepare(queued) {
                batch.push(header, payload);
                batch.descriptor = descriptor;
            }
        }
        if batch.is_empty() && !self.write_over {
            if self.queue.capacity() > KEPT {
                self.queue = VecDeque::new();
            }
            self.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The frame as it is written now; none where the peer has no use for it any more.
    fn prepare(&mut self, queued: Queued) -> Option<(Header, Bytes, Option<OwnedFd>)> {
        let Queued { channel: id, kind, lane, mut payload, descriptor } = queued;
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
            Kind::Open | Kind::Data | Kind::End | Kind::Pass | Kind::Lost => {}
        }
        // Every payload was cut to the limit when it was queued.
        let length = payload.len() as u32;
        Some((Header { channel: id, kind, lane, length }, payload, descriptor))
    }
}
