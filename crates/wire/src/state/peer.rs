//! What a frame of the peer does to the state. Every header here has been decoded, every other claim of the peer is
//! still to be checked.

use std::os::fd::OwnedFd;

use bytes::{Buf, Bytes};

use super::{ChannelState, State};
use crate::connection::Side;
use crate::error::ProtocolError;
use crate::frame::{CHANNEL_LIMIT, Header, Kind};

impl State {
    /// Takes one frame of the peer.
    pub(crate) fn receive(&mut self, header: Header, mut payload: Bytes) -> Result<(), ProtocolError> {
        let id = header.channel;
        if header.kind == Kind::Open {
            return self.receive_open(id);
        }
        let channel = self.open_channel(id)?;
        let lane = header.lane.index();
        match header.kind {
            // The first has been looked at, the others never come here.
            Kind::Open | Kind::Pass | Kind::Lost => {}
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

    /// Takes what came for a channel beside the bytes.
    pub(crate) fn receive_descriptor(
        &mut self,
        id: u32,
        passed: Option<Option<OwnedFd>>,
    ) -> Result<(), ProtocolError> {
        if self.side == Side::Asking {
            return Err(ProtocolError::BadPass(id));
        }
        let channel = self.open_channel(id)?;
        if passed.is_none() || channel.passed.is_some() {
            return Err(ProtocolError::BadPass(id));
        }
        channel.passed = passed.filter(|_| !channel.closed_here);
        Ok(())
    }

    /// A channel on which the peer may still say something.
    fn open_channel(&mut self, id: u32) -> Result<&mut ChannelState, ProtocolError> {
        let channel = self.channels.get_mut(&id).ok_or(ProtocolError::UnknownChannel(id))?;
        if channel.is_over() {
            return Err(ProtocolError::UnknownChannel(id));
        }
        if channel.closed_there {
            return Err(ProtocolError::AfterEnd(id));
        }
        Ok(channel)
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
        self.channels.insert(id, Box::default());
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
}
