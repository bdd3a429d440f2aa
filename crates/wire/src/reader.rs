//! The task that reads: hostile bytes into frames, and frames into the state. Payloads are handed on as slices of
//! the buffer they were read into.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::AsyncRead;

use crate::buffers::ReadBuffers;
use crate::connection::Shared;
use crate::error::{ConnectionEnd, ProtocolError};
use crate::frame::{HEADER, Header, Kind};
use crate::passage::Passage;

/// Reads until the stream ends, for whichever reason.
pub(crate) async fn run<R: AsyncRead + Unpin>(mut read: R, shared: &Shared) -> ConnectionEnd {
    let mut buffers = ReadBuffers::default();
    loop {
        match buffers.fill(&mut read).await {
            Ok(0) if buffers.unread().is_empty() => return ConnectionEnd::Clean,
            Ok(0) => return ConnectionEnd::Protocol(ProtocolError::Truncated),
            Ok(_) => shared.hear(),
            Err(error) => return ConnectionEnd::Io(Arc::new(error)),
        }
        if let Err(error) = deliver(buffers.unread(), shared) {
            return ConnectionEnd::Protocol(error);
        }
    }
}

/// Takes every whole frame off the buffer.
fn deliver(buffer: &mut BytesMut, shared: &Shared) -> Result<(), ProtocolError> {
    let mut state = shared.state();
    while let Some(bytes) = buffer.first_chunk::<HEADER>() {
        let header = Header::decode(*bytes)?;
        if buffer.len() < HEADER + header.length as usize {
            break;
        }
        buffer.advance(HEADER);
        match header.kind {
            Kind::Pass => {
                let passed = shared.passage().and_then(Passage::take);
                state.receive_descriptor(header.channel, passed)?;
            }
            Kind::Lost => state.receive_descriptor(header.channel, Some(None))?,
            _ => state.receive(header, buffer.split_to(header.length as usize).freeze())?,
        }
    }
    Ok(())
}
