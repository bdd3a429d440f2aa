//! Where a stream is read into when its bytes are handed on as slices. A large buffer is slow to get from the system
//! and heavy to keep, so a few are used in turn while there is much to read and none is kept when there is not.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The buffer of a stream that has little to say.
const QUIET: usize = 4 * 1024;
/// Each buffer while there is much to read.
const BUSY: usize = 256 * 1024;
/// The least room worth a read while there is much to read.
const ROOM: usize = 64 * 1024;
/// Buffers that wait for their slices to be consumed: what fits into the windows of two connections, one of which
/// is relayed to the other.
const SPARES: usize = 3;
/// After so long without a byte the large buffers are given back.
const IDLE: Duration = Duration::from_millis(200);

/// Buffers for one stream. Large while it is busy, small when it is quiet; a steady flow allocates nothing as long
/// as what was handed out is dropped in time.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    current: BytesMut,
    spares: VecDeque<BytesMut>,
    busy: bool,
}

impl ReadBuffers {
    /// Reads once and hands out what came; nothing at the end of the stream. Cancel-safe. Needs the timer of the
    /// runtime.
    pub async fn read<R: AsyncRead + Unpin>(&mut self, source: &mut R) -> io::Result<Bytes> {
        self.fill(source).await?;
        Ok(self.current.split().freeze())
    }

    /// Reads once, behind what is unread. Cancel-safe.
    pub(crate) async fn fill<R: AsyncRead + Unpin>(&mut self, source: &mut R) -> io::Result<usize> {
        self.make_room();
        let room = self.current.capacity() - self.current.len();
        let length = match self.busy {
            true => match timeout(IDLE, source.read_buf(&mut self.current)).await {
                Ok(length) => length?,
                Err(_) => {
                    self.give_back();
                    source.read_buf(&mut self.current).await?
                }
            },
            false => source.read_buf(&mut self.current).await?,
        };
        self.busy |= length == room;
        Ok(length)
    }

    /// What was read and not yet taken.
    pub(crate) fn unread(&mut self) -> &mut BytesMut {
        &mut self.current
    }

    fn make_room(&mut self) {
        let (least, size) = if self.busy { (ROOM, BUSY) } else { (1, QUIET) };
        let unread = self.current.len();
        let wanted = size.saturating_sub(unread).max(least);
        if self.current.capacity() - unread >= least || self.current.try_reclaim(wanted) {
            return;
        }
        let mut next = self.next_buffer(size);
        next.extend_from_slice(&self.current);
        self.current.clear();
        self.spares.push_back(mem::replace(&mut self.current, next));
        if self.spares.len() > SPARES {
            self.spares.pop_front();
        }
    }

    /// The spare that was filled first, where nobody holds a slice of it any more, or a new buffer.
    fn next_buffer(&mut self, size: usize) -> BytesMut {
        match self.spares.pop_front_if(|spare| spare.try_reclaim(size)) {
            Some(spare) => spare,
            None => BytesMut::with_capacity(size),
        }
    }

    fn give_back(&mut self) {
        let unread = mem::take(self).current;
        self.current.reserve(QUIET.max(unread.len() + 1));
        self.current.extend_from_slice(&unread);
    }
}
