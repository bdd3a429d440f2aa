//! What our own senders and receivers do to the state.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::State;
use crate::error::LaneError;
use crate::frame::{Kind, LaneName, PAYLOAD_LIMIT};

impl State {
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

    /// Gives the peer its credit back where enough is owed.
    pub(super) fn return_credit(&mut self, id: u32, lane: LaneName) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let closed = channel.closed_here || channel.closed_there;
        if !closed && channel.inbound[lane.index()].wants_credit() {
            self.push(id, Kind::Credit, lane, Bytes::new());
        }
    }
}
