//! Flow control of one lane: what we may still send, and what the peer may still send us. This is where the
//! memory that a peer can make us hold is bounded.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

use bytes::{Bytes, BytesMut};

use crate::error::ProtocolError;
use crate::frame::WINDOW;

/// Payloads below this size are copied together instead of being kept as slices: a slice holds on to the whole
/// buffer that it was read into, and a peer could otherwise make us keep a large buffer for every byte it sent.
const COPY_BELOW: usize = 8 * 1024;

/// Slices kept at once, for the same reason; a window of full frames fits. What comes on top is copied.
const SLICES: usize = 4;

/// The direction from us to the peer.
#[derive(Debug)]
pub(crate) struct Outbound {
    credit: u32,
    pub(crate) finished: bool,
    pub(crate) waiting: Option<Waker>,
}

impl Outbound {
    pub(crate) fn new() -> Self {
        Self { credit: WINDOW, finished: false, waiting: None }
    }

    /// Takes up to `wanted` bytes of credit.
    pub(crate) fn take(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.credit);
        self.credit -= taken;
        taken
    }

    /// The peer gives credit back; it cannot give more than it was sent.
    pub(crate) fn grant(&mut self, channel: u32, amount: u32) -> Result<(), ProtocolError> {
        if amount == 0 || amount > WINDOW - self.credit {
            return Err(ProtocolError::BadCredit(channel));
        }
        self.credit += amount;
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
        Ok(())
    }
}

/// The direction from the peer to us.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// What the peer may still send.
    window: u32,
    /// What was consumed and not yet credited to the peer.
    owed: u32,
    /// A credit for this lane waits to be written; its amount is fixed only then, so one at most is queued.
    credit_queued: bool,
    /// The peer has finished.
    pub(crate) ended: bool,
    /// Nobody here will read any more.
    discarded: bool,
    chunks: VecDeque<Bytes>,
    /// Small payloads that came after the last of `chunks`.
    tail: BytesMut,
    pub(crate) waiting: Option<Waker>,
}

impl Inbound {
    pub(crate) fn new() -> Self {
        Self {
            window: WINDOW,
            owed: 0,
            credit_queued: false,
            ended: false,
            discarded: false,
            chunks: VecDeque::new(),
            tail: BytesMut::new(),
            waiting: None,
        }
    }

    /// Keeps a payload for the consumer, or counts it as consumed where there is none.
    pub(crate) fn accept(&mut self, channel: u32, payload: Bytes) -> Result<(), ProtocolError> {
        if self.ended {
            return Err(ProtocolError::AfterEnd(channel));
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.window = self.window.checked_sub(length).ok_or(ProtocolError::WindowExceeded(channel))?;
        if self.discarded {
            self.owed += length;
            return Ok(());
        }
        if payload.len() < COPY_BELOW || self.chunks.len() >= SLICES {
            self.tail.extend_from_slice(&payload);
        } else {
            if !self.tail.is_empty() {
                self.chunks.push_back(mem::take(&mut self.tail).freeze());
            }
            self.chunks.push_back(payload);
        }
        self.wake();
        Ok(())
    }

    pub(crate) fn end(&mut self, channel: u32) -> Result<(), ProtocolError> {
        if self.ended {
            return Err(ProtocolError::AfterEnd(channel));
        }
        self.ended = true;
        self.wake();
        Ok(())
    }

    /// The next bytes for the consumer.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let chunk = match self.chunks.pop_front() {
            Some(chunk) => chunk,
            None if self.tail.is_empty() => return None,
            None => mem::take(&mut self.tail).freeze(),
        };
        self.owed += u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        Some(chunk)
    }

    /// From now on whatever comes counts as consumed.
    pub(crate) fn discard(&mut self) {
        while self.take().is_some() {}
        self.chunks = VecDeque::new();
        self.discarded = true;
        self.waiting = None;
    }

    /// Whether a credit frame must be queued now; true once until `take_credit`.
    pub(crate) fn wants_credit(&mut self) -> bool {
        let wants = !self.credit_queued && !self.ended && self.owed >= WINDOW / 2;
        self.credit_queued |= wants;
        wants
    }

    /// The amount of the queued credit frame, which the peer may use from now on.
    pub(crate) fn take_credit(&mut self) -> u32 {
        self.credit_queued = false;
        let amount = mem::take(&mut self.owed);
        self.window += amount;
        amount
    }

    pub(crate) fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum::<usize>() + self.tail.len()
    }
}
