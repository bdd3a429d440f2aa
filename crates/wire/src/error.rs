//! Every way in which a connection, a channel or a lane can end other than well.

use std::io;
use std::sync::Arc;

use crate::frame::{CHANNEL_LIMIT, PAYLOAD_LIMIT};
use crate::lane::MESSAGE_LIMIT;

/// What the peer did that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The high half of the fifth header byte.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    /// The low half of the fifth header byte.
    #[error("unknown lane {0}")]
    UnknownLane(u8),
    /// A payload over the limit, or of a length that this kind of frame cannot have.
    #[error("a frame with {0} bytes of payload, which its kind does not allow (at most {PAYLOAD_LIMIT})")]
    BadLength(u32),
    /// A frame for a channel that was never opened or that both sides had closed.
    #[error("a frame for channel {0}, which is not open")]
    UnknownChannel(u32),
    /// Ids must rise and be odd from the asking side, even from the answering side.
    #[error("channel {0} cannot be opened by the peer now")]
    BadChannelId(u32),
    /// More channels at once than allowed.
    #[error("more than {CHANNEL_LIMIT} open channels")]
    TooManyChannels,
    /// More data than the window had left.
    #[error("more data on channel {0} than its window allows")]
    WindowExceeded(u32),
    /// A credit of nothing, or of more than was ever taken.
    #[error("a credit on channel {0} that is not owed")]
    BadCredit(u32),
    /// Data or an end on a lane that the peer had finished, or anything on a channel that it had closed.
    #[error("a frame on channel {0} after its end")]
    AfterEnd(u32),
    /// A second descriptor for a channel, or one that did not come, or came where none is taken.
    #[error("a descriptor for channel {0} that cannot be")]
    BadPass(u32),
    /// The stream ended within a frame.
    #[error("the stream ended in the middle of a frame")]
    Truncated,
}

/// How a connection ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// The peer closed the stream between two frames.
    #[error("the peer closed the connection")]
    Clean,
    /// The stream could not be read.
    #[error("the connection failed")]
    Io(#[source] Arc<io::Error>),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol")]
    Protocol(#[source] ProtocolError),
}

/// Why a channel could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The connection has ended or was shut down.
    #[error("the connection is over")]
    Over,
    /// As many channels as allowed are open.
    #[error("{CHANNEL_LIMIT} channels are open already")]
    TooManyChannels,
    /// Every id of this side has been used.
    #[error("no channel id is left on this connection")]
    IdsExhausted,
}

/// The peer passed a descriptor, and one of the two has as many as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many open descriptors to pass another")]
pub struct NoDescriptorLeft;

/// Why a lane gives or takes no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// One side closed the channel before the lane was finished.
    #[error("the channel was closed")]
    Closed,
    /// The connection ended before the lane was finished.
    #[error("the connection was lost")]
    Lost,
    /// The stream carries bytes alone.
    #[error("the connection carries no descriptors")]
    NoPassage,
    /// A message over the limit, announced by the peer or asked to be sent.
    #[error("a message of {0} bytes is over the limit of {MESSAGE_LIMIT}")]
    MessageTooLarge(usize),
    /// The lane was finished within a message.
    #[error("the lane was finished in the middle of a message")]
    MessageTruncated,
    /// The bytes are not such a message.
    #[error("a message could not be decoded")]
    BadMessage(#[from] prost::DecodeError),
}
