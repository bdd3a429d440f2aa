//! One request: four lanes and the handle whose life is the channel's.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::connection::Shared;
use crate::error::{LaneError, NoDescriptorLeft};
use crate::frame::LaneName;
use crate::lane::Lane;

/// An open channel. Take it apart freely: the parts live on their own.
#[derive(Debug)]
pub struct Channel {
    /// Length-delimited messages.
    pub messages: Lane,
    /// The stdin of what runs.
    pub input: Lane,
    /// Its stdout, or its terminal.
    pub output: Lane,
    /// Its stderr.
    pub error: Lane,
    /// Closes the channel when it is dropped.
    pub handle: ChannelHandle,
}

impl Channel {
    pub(crate) fn new(shared: &Arc<Shared>, id: u32) -> Self {
        let lane = |name| Lane::new(shared, id, name);
        Self {
            messages: lane(LaneName::Messages),
            input: lane(LaneName::In),
            output: lane(LaneName::Out),
            error: lane(LaneName::Err),
            handle: ChannelHandle { shared: Arc::clone(shared), id },
        }
    }
}

/// Keeps a channel open. Dropping it closes the channel after what was sent before; what the peer had sent by then
/// can still be read from the receivers.
#[derive(Debug)]
pub struct ChannelHandle {
    shared: Arc<Shared>,
    id: u32,
}

impl ChannelHandle {
    /// Passes a descriptor to the peer, before whatever is sent after this. One for each channel.
    pub fn pass(&self, descriptor: OwnedFd) -> Result<(), LaneError> {
        if self.shared.passage().is_none() {
            return Err(LaneError::NoPassage);
        }
        self.shared.state().pass(self.id, descriptor)
    }

    /// The descriptor that the peer passed before what has been received. It may be anything.
    pub fn take_passed(&self) -> Result<Option<OwnedFd>, NoDescriptorLeft> {
        self.shared.state().take_passed(self.id)
    }

    /// Waits until the peer has closed the channel or the connection has ended. Cancel-safe.
    pub async fn closed(&self) {
        loop {
            let Some(closed) = self.shared.state().until_closed(self.id) else { return };
            let notified = closed.notified();
            // A close between the look before and the line above would be missed without a second look.
            if self.shared.state().until_closed(self.id).is_none() {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for ChannelHandle {
    fn drop(&mut self) {
        self.shared.state().close(self.id);
    }
}
