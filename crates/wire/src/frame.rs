//! The eight bytes before each payload, and the limits that both sides keep. Headers are decoded from hostile
//! bytes: whatever cannot be a frame is refused here, before a byte of its payload is waited for.
//!
//! `channel: u32 LE | kind: high 4 bits, lane: low 4 bits | length: u24 LE | payload`

use crate::error::ProtocolError;

/// Bytes of a header.
pub(crate) const HEADER: usize = 8;
/// Where a header says what its frame does.
pub(crate) const KIND: usize = 4;
/// Most bytes of one payload.
pub(crate) const PAYLOAD_LIMIT: u32 = 64 * 1024;
/// What each lane may send in each direction before it needs credit.
pub(crate) const WINDOW: u32 = 256 * 1024;
/// Most channels that each side may have open at once.
pub(crate) const CHANNEL_LIMIT: usize = 1024;

/// What a frame does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A new channel.
    Open = 1,
    /// Bytes on a lane.
    Data = 2,
    /// So many more bytes may be sent on this lane (payload u32 LE).
    Credit = 3,
    /// This direction of this lane is finished.
    End = 4,
    /// The sender of this frame says no more on this channel and hears no more.
    Close = 5,
    /// A descriptor for this channel, which came beside the bytes of the socket.
    Pass = 6,
    /// A descriptor for this channel that the kernel did not take.
    Lost = 7,
}

/// The four streams of a channel. The numbers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneName {
    Messages = 0,
    In = 1,
    Out = 2,
    Err = 3,
}

impl LaneName {
    pub(crate) const COUNT: usize = 4;

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// A header that can be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) channel: u32,
    pub(crate) kind: Kind,
    pub(crate) lane: LaneName,
    pub(crate) length: u32,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let [c0, c1, c2, c3] = self.channel.to_le_bytes();
        let [l0, l1, l2, _] = self.length.to_le_bytes();
        [c0, c1, c2, c3, ((self.kind as u8) << 4) | self.lane as u8, l0, l1, l2]
    }

    pub(crate) fn decode(bytes: [u8; HEADER]) -> Result<Self, ProtocolError> {
        let [c0, c1, c2, c3, what, l0, l1, l2] = bytes;
        let kind = match what >> 4 {
            1 => Kind::Open,
            2 => Kind::Data,
            3 => Kind::Credit,
            4 => Kind::End,
            5 => Kind::Close,
            6 => Kind::Pass,
            7 => Kind::Lost,
            other => return Err(ProtocolError::UnknownKind(other)),
        };
        let lane = match what & 0x0f {
            0 => LaneName::Messages,
            1 => LaneName::In,
            2 => LaneName::Out,
            3 => LaneName::Err,
            other => return Err(ProtocolError::UnknownLane(other)),
        };
        let length = u32::from_le_bytes([l0, l1, l2, 0]);
        // Empty data is refused because it would cost us memory without costing the peer credit.
        let allowed = match kind {
            Kind::Data => 1..=PAYLOAD_LIMIT,
            Kind::Credit => 4..=4,
            Kind::Open | Kind::End | Kind::Close | Kind::Pass | Kind::Lost => 0..=0,
        };
        if !allowed.contains(&length) {
            return Err(ProtocolError::BadLength(length));
        }
        if !matches!(kind, Kind::Data | Kind::Credit | Kind::End) && lane != LaneName::Messages {
            return Err(ProtocolError::UnknownLane(lane as u8));
        }
        Ok(Self { channel: u32::from_le_bytes([c0, c1, c2, c3]), kind, lane, length })
    }
}
