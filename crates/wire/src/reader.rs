//! The task that reads: hostile bytes into frames, and frames into the state. Payloads are handed on as slices of
//! the buffer they were read into.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::connection::Shared;
use crate::error::{ConnectionEnd, ProtocolError};
use crate::frame::{HEADER, Header, PAYLOAD_LIMIT};

/// The buffer of a connection that has little to say.
const QUIET: usize = 4 * 1024;
/// The buffers while there is much to read.
const BUSY: usize = 256 * 1024;
/// The least room worth a read while there is much to read.
const ROOM: usize = PAYLOAD_LIMIT as usize;
/// After so long without a byte the large buffers are given back.
const IDLE: Duration = Duration::from_millis(200);

/// Reads until the stream ends, for whichever reason.
pub(crate) async fn run<R: AsyncRead + Unpin>(mut read: R, shared: &Shared) -> ConnectionEnd {
    let mut buffers = Buffers::default();
    loop {
        match buffers.fill(&mut read).await {
            Ok(0) if buffers.current.is_empty() => return ConnectionEnd::Clean,
            Ok(0) => return ConnectionEnd::Protocol(ProtocolError::Truncated),
            Ok(_) => {}
            Err(error) => return ConnectionEnd::Io(Arc::new(error)),
        }
        if let Err(error) = deliver(&mut buffers.current, shared) {
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
        state.receive(header, buffer.split_to(header.length as usize).freeze())?;
    }
    Ok(())
}

/// Where the stream is read into. A buffer can be used again once every slice of it was consumed; while the one
/// is with the consumers, the other is filled, so that a steady flow allocates nothing.
#[derive(Default)]
struct Buffers {
    current: BytesMut,
    other: BytesMut,
    busy: bool,
}

impl Buffers {
    /// Reads once. The buffers grow when a read fills them and shrink when nothing comes for a while.
    async fn fill<R: AsyncRead + Unpin>(&mut self, read: &mut R) -> io::Result<usize> {
        self.make_room();
        let room = self.current.capacity() - self.current.len();
        let length = if self.busy {
            match timeout(IDLE, read.read_buf(&mut self.current)).await {
                Ok(length) => length?,
                Err(_) => {
                    self.give_back();
                    read.read_buf(&mut self.current).await?
                }
            }
        } else {
            read.read_buf(&mut self.current).await?
        };
        self.busy |= length == room;
        Ok(length)
    }

    fn make_room(&mut self) {
        let (least, size) = if self.busy { (ROOM, BUSY) } else { (1, QUIET) };
        let held = self.current.len();
        if self.current.capacity() - held >= least
            || self.current.try_reclaim(size.saturating_sub(held).max(least))
        {
            return;
        }
        self.other.clear();
        if !self.other.try_reclaim(size) {
            self.other = BytesMut::with_capacity(size);
        }
        self.other.extend_from_slice(&self.current);
        mem::swap(&mut self.current, &mut self.other);
    }

    fn give_back(&mut self) {
        let rest = mem::take(&mut self.current);
        *self = Self::default();
        self.current.reserve(QUIET.max(rest.len() + 1));
        self.current.extend_from_slice(&rest);
    }
}
