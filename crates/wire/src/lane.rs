//! The two ends of a lane, as bytes or as messages.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::connection::Shared;
use crate::error::LaneError;
use crate::frame::LaneName;

/// Most bytes of one message.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;

/// The most bytes that the length before a message can take, at seven bits a byte.
const LENGTH_BYTES: usize = 4;

/// One stream of a channel, in both directions.
#[derive(Debug)]
pub struct Lane {
    /// From us to the peer.
    pub sender: LaneSender,
    /// From the peer to us.
    pub receiver: LaneReceiver,
}

impl Lane {
    pub(crate) fn new(shared: &Arc<Shared>, id: u32, name: LaneName) -> Self {
        Self {
            sender: LaneSender { shared: Arc::clone(shared), id, name },
            receiver: LaneReceiver { shared: Arc::clone(shared), id, name, partial: BytesMut::new() },
        }
    }
}

/// Sends on a lane. Dropping it finishes this direction of the lane.
#[derive(Debug)]
pub struct LaneSender {
    shared: Arc<Shared>,
    id: u32,
    name: LaneName,
}

impl LaneSender {
    /// Queues `bytes` for the peer, waiting while the peer has a window full of this lane unread.
    ///
    /// Not cancel-safe: when dropped while it waits, a part of `bytes` has been sent.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<(), LaneError> {
        poll_fn(|context| self.shared.state().poll_send(context, (self.id, self.name), &mut bytes)).await
    }

    /// Sends a message after its length. Not cancel-safe, as [`LaneSender::send`].
    pub async fn send_message<M: prost::Message>(&mut self, message: &M) -> Result<(), LaneError> {
        let length = message.encoded_len();
        if length > MESSAGE_LIMIT {
            return Err(LaneError::MessageTooLarge(length));
        }
        self.send(message.encode_length_delimited_to_vec().into()).await
    }

    /// Tells the peer that this was all.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for LaneSender {
    fn drop(&mut self) {
        self.shared.state().finish(self.id, self.name);
    }
}

/// Receives from a lane. When dropped, what the peer still sends here is thrown away, and the peer does not stall.
#[derive(Debug)]
pub struct LaneReceiver {
    shared: Arc<Shared>,
    id: u32,
    name: LaneName,
    /// Bytes taken off the lane that are not yet a whole message.
    partial: BytesMut,
}

impl LaneReceiver {
    /// The next bytes; none when the peer has finished; an error when the channel was closed or the connection
    /// lost before that. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Bytes>, LaneError> {
        if !self.partial.is_empty() {
            return Ok(Some(mem::take(&mut self.partial).freeze()));
        }
        self.next_chunk().await
    }

    /// The next message; none when the peer has finished after a whole one. Cancel-safe.
    pub async fn next_message<M: prost::Message + Default>(&mut self) -> Result<Option<M>, LaneError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(M::decode(message)?));
            }
            match self.next_chunk().await? {
                Some(chunk) if self.partial.is_empty() => self.partial = chunk.into(),
                Some(chunk) => self.partial.extend_from_slice(&chunk),
                None if self.partial.is_empty() => return Ok(None),
                None => return Err(LaneError::MessageTruncated),
            }
        }
    }

    async fn next_chunk(&self) -> Result<Option<Bytes>, LaneError> {
        poll_fn(|context| self.shared.state().poll_receive(context, self.id, self.name)).await
    }

    /// Cuts the first whole message off `partial`.
    fn take_message(&mut self) -> Result<Option<Bytes>, LaneError> {
        let Some((prefix, length)) = message_length(&self.partial)? else { return Ok(None) };
        if self.partial.len() < prefix + length {
            return Ok(None);
        }
        let mut message = self.partial.split_to(prefix + length);
        if self.partial.is_empty() {
            // An idle lane holds no buffer.
            self.partial = BytesMut::new();
        }
        Ok(Some(message.split_off(prefix).freeze()))
    }
}

impl Drop for LaneReceiver {
    fn drop(&mut self) {
        self.shared.state().discard(self.id, self.name);
    }
}

/// The length that `bytes` begin with and how many bytes it takes; none where they end within it.
fn message_length(bytes: &[u8]) -> Result<Option<(usize, usize)>, LaneError> {
    let mut length = 0;
    for (index, byte) in bytes.iter().take(LENGTH_BYTES).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if length > MESSAGE_LIMIT || (byte & 0x80 != 0 && index + 1 == LENGTH_BYTES) {
            return Err(LaneError::MessageTooLarge(length));
        }
        if byte & 0x80 == 0 {
            return Ok(Some((index + 1, length)));
        }
    }
    Ok(None)
}
