//! A TCP connection over two lanes of a channel: what init and its supervisor do alike at their ends of one. Each
//! direction ends by itself, as a direction of TCP does. What breaks arrives as broken: the peer finds the channel
//! closed before a lane was finished, and the connection is reset.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::buffers::ReadBuffers;
use crate::channel::ChannelHandle;
use crate::lane::{LaneReceiver, LaneSender};

/// The lanes that carry a connection.
#[derive(Debug)]
pub struct Carrier {
    /// What the connection gives us goes here.
    pub sender: LaneSender,
    /// What comes here goes to the connection.
    pub receiver: LaneReceiver,
    /// Their channel.
    pub handle: ChannelHandle,
}

/// Hears how many bytes went on.
pub trait Count {
    /// So many came from the connection and were passed to the peer.
    fn sent(&self, bytes: usize);
    /// So many came from the peer and were passed to the connection.
    fn received(&self, bytes: usize);
}

/// Who does not count.
impl Count for () {
    fn sent(&self, _: usize) {}
    fn received(&self, _: usize) {}
}

/// One side is gone without having said that this was all.
struct Broken;

/// Passes bytes on until both directions have ended or one side is gone.
pub async fn relay(mut stream: TcpStream, carrier: Carrier, count: &impl Count) {
    let Carrier { sender, receiver, handle } = carrier;
    // Bytes wait long enough elsewhere.
    let _ = stream.set_nodelay(true);
    let mut sender = Some(sender);
    let refused = AtomicBool::new(false);
    let (reading, writing) = stream.split();
    let ended = tokio::try_join!(
        send((reading, &refused), &mut sender, &handle, count),
        receive((writing, &refused), receiver, count)
    );
    // Before the lane, which would be finished otherwise: the peer is to see that this was not all.
    drop(handle);
    drop(sender);
    if let Err(Broken) = ended {
        reset(stream);
    }
}

/// Closes a connection so that its peer finds it broken, or refused where nothing has been heard of it yet.
pub fn reset(stream: TcpStream) {
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

/// From the connection to the lane, whose sender is taken when all has been sent.
async fn send(
    (mut reading, refused): (ReadHalf<'_>, &AtomicBool),
    sender: &mut Option<LaneSender>,
    handle: &ChannelHandle,
    count: &impl Count,
) -> Result<(), Broken> {
    let mut buffers = ReadBuffers::default();
    while let Some(lane) = sender.as_mut() {
        let read = tokio::select! {
            read = buffers.read(&mut reading) => read,
            // Whoever would read it has left; what came from there before is still on its way.
            () = handle.closed() => return Ok(()),
        };
        let bytes = read.map_err(|_| Broken)?;
        if bytes.is_empty() {
            *sender = None;
            return Ok(());
        }
        count.sent(bytes.len());
        tokio::select! {
            sent = lane.send(bytes) => if sent.is_err() { return Ok(()) },
            // A peer that does not read must not hide that nobody is left who writes.
            () = broken(&reading, refused) => return Err(Broken),
        }
    }
    Ok(())
}

/// Until the connection is broken. That it is said to be ready for an error is not enough: gVisor's kernel says so, too, of
/// one that both sides have closed in good order. Whoever wrote to it meanwhile may have taken the error.
async fn broken(reading: &ReadHalf<'_>, refused: &AtomicBool) {
    let _ = reading.ready(Interest::ERROR).await;
    if matches!(reading.as_ref().take_error(), Ok(None)) && !refused.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// From the lane to the connection, until the lane is finished or the connection takes no more.
async fn receive(
    (mut writing, refused): (WriteHalf<'_>, &AtomicBool),
    mut receiver: LaneReceiver,
    count: &impl Count,
) -> Result<(), Broken> {
    while let Some(bytes) = receiver.next().await.map_err(|_| Broken)? {
        let length = bytes.len();
        if write(&mut writing, bytes).await.is_err() {
            refused.store(true, Ordering::Relaxed);
            // It may still have something to say; the peer does not stall for want of this reader.
            return Ok(());
        }
        count.received(length);
    }
    let _ = writing.shutdown().await;
    Ok(())
}

async fn write(writing: &mut WriteHalf<'_>, mut bytes: Bytes) -> io::Result<()> {
    writing.write_all_buf(&mut bytes).await
}
