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
/// Buffers that wait for their slices to be consumed: what fits into the windows of two connections, one of which
/// is relayed to the other.
const SPARES: usize = 3;
/// After so long without a byte the large buffers are given back,
const IDLE: Duration = Duration::from_millis(200);
/// and after so many reads in a row for which a small one would have done.
const SMALL_READS: u32 = 32;

/// Buffers for one stream. Large while it is busy, small when it is quiet; a steady flow allocates nothing as long
/// as what was handed out is dropped in time.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    current: BytesMut,
    spares: VecDeque<BytesMut>,
    busy: bool,
    small_reads: u32,
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
        self.adapt(length, room);
        Ok(length)
    }

    fn adapt(&mut self, length: usize, room: usize) {
        self.busy |= length == room;
        self.small_reads = if length < QUIET { self.small_reads + 1 } else { 0 };
        if self.busy && self.small_reads >= SMALL_READS {
            self.give_back();
        }
    }

    /// What was read and not yet taken.
    pub(crate) fn unread(&mut self) -> &mut BytesMut {
        &mut self.current
    }

    fn make_room(&mut self) {
        let size = if self.busy { BUSY } else { QUIET };
        let least = size / 4;
        let unread = self.current.len();
        let wanted = size.saturating_sub(unread).max(least);
        if self.current.capacity() - unread >= least || self.current.try_reclaim(wanted) {
            return;
        }
        let mut next = self.next_buffer(unread + wanted);
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
        self.current.reserve(QUIET.max(2 * unread.len()));
        self.current.extend_from_slice(&unread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_steady_flow_uses_the_same_memory_again() {
        let mut buffers = ReadBuffers::default();
        let mut source = tokio::io::repeat(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let chunk = buffers.read(&mut source).await.unwrap();
            seen.insert(chunk.as_ptr());
        }
        assert!(seen.len() < 8, "{} different places", seen.len());
    }

    #[tokio::test]
    async fn a_quiet_stream_never_gets_a_large_buffer() {
        let mut buffers = ReadBuffers::default();
        for _ in 0..1000 {
            assert_eq!(buffers.read(&mut &[1; 700][..]).await.unwrap(), [1; 700][..]);
            assert!(!buffers.busy && buffers.current.capacity() <= QUIET);
        }
    }

    #[tokio::test]
    async fn large_buffers_are_given_back_to_a_trickle() {
        let mut buffers = ReadBuffers::default();
        while !buffers.busy {
            buffers.read(&mut tokio::io::repeat(7)).await.unwrap();
        }
        for _ in 0..SMALL_READS {
            buffers.read(&mut &[1; 9][..]).await.unwrap();
        }
        assert!(!buffers.busy && buffers.spares.is_empty() && buffers.current.capacity() <= QUIET);
    }

    #[tokio::test(start_paused = true)]
    async fn large_buffers_are_given_back_in_silence_and_nothing_is_lost() {
        let (mut far, mut near) = tokio::io::duplex(BUSY);
        let mut buffers = ReadBuffers::default();
        while !buffers.busy {
            tokio::io::AsyncWriteExt::write_all(&mut far, &[7; QUIET]).await.unwrap();
            buffers.fill(&mut near).await.unwrap();
        }
        let unread = buffers.unread().len();
        let silence = timeout(2 * IDLE, buffers.fill(&mut near)).await;
        assert!(silence.is_err() && buffers.spares.is_empty());
        assert_eq!(buffers.unread().len(), unread);
        assert!(buffers.current.capacity() <= 2 * unread);
    }
}
