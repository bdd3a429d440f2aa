//! The task that writes: as many queued frames as there are with one system call.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::connection::Shared;
use crate::frame::{HEADER, Header, KIND, Kind};
use crate::passage::Passage;

/// Most frames of one batch.
const FRAMES: usize = 32;

/// Frames on their way out.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    frames: Vec<([u8; HEADER], Bytes)>,
    /// What goes with it, for the last of its frames.
    pub(crate) descriptor: Option<OwnedFd>,
}

impl Batch {
    pub(crate) fn push(&mut self, header: Header, payload: Bytes) {
        self.frames.push((header.encode(), payload));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= FRAMES || self.descriptor.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Says of the descriptor that it could not be passed.
    fn lose(&mut self) {
        if let Some((header, _)) = self.frames.last_mut() {
            header[KIND] = (Kind::Lost as u8) << 4;
        }
    }

    #[cfg(test)]
    pub(crate) fn frames(self) -> impl Iterator<Item = ([u8; HEADER], Bytes)> {
        self.frames.into_iter()
    }
}

/// Writes until the connection is shut down or the stream takes no more. A failure to write does not end the
/// connection: what the peer had sent before it went can still be read, and the reader finds its end.
pub(crate) async fn run<W: AsyncWrite + Unpin>(mut write: W, shared: Arc<Shared>) {
    let mut batch = Batch::default();
    loop {
        poll_fn(|context| shared.state().poll_batch(context, &mut batch)).await;
        if batch.is_empty() {
            break;
        }
        if let (Some(descriptor), Some(passage)) = (batch.descriptor.take(), shared.passage()) {
            passage.load(descriptor);
        }
        let mut written = write_batch(&mut write, &batch).await;
        if written.is_err() && shared.passage().is_some_and(Passage::unload) {
            // It would have gone with the first byte, so none has: the user may have as many on their way as the kernel
            // allows. The channel is told, and the others go on.
            batch.lose();
            written = write_batch(&mut write, &batch).await;
        }
        batch.frames.clear();
        if written.is_err() {
            shared.state().stop_writing();
            break;
        }
    }
    // The stream is closed when `write` is dropped in any case.
    let _ = write.shutdown().await;
}

async fn write_batch<W: AsyncWrite + Unpin>(write: &mut W, batch: &Batch) -> io::Result<()> {
    let mut slices = [IoSlice::new(&[]); 2 * FRAMES];
    let pairs = batch.frames.iter().flat_map(|(header, payload)| [&header[..], &payload[..]]);
    let mut count = 0;
    for (slot, bytes) in slices.iter_mut().zip(pairs.filter(|bytes| !bytes.is_empty())) {
        *slot = IoSlice::new(bytes);
        count += 1;
    }
    let mut rest = &mut slices[..count];
    while !rest.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut *write).poll_write_vectored(context, rest)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    write.flush().await
}
