//! One connection of a published port, from its first byte to its last, and what is counted of all of them.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::{
    Ask, Carrier, Channel, Connection, Count, Dial, Dialled, LaneError, PortState, Request, VERSION, relay,
    reset,
};

/// How long init may take to connect; the walls around it may still go up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What went through a port.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    open: AtomicU64,
    total: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Traffic {
    pub(super) fn state(&self, address: SocketAddr, inside: NonZeroU16) -> PortState {
        let now = |number: &AtomicU64| number.load(Ordering::Relaxed);
        PortState {
            host: address.to_string(),
            inside: inside.get().into(),
            open: now(&self.open),
            total: now(&self.total),
            bytes_in: now(&self.bytes_in),
            bytes_out: now(&self.bytes_out),
        }
    }

    fn enter(&self) -> Open<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }
}

impl Count for Traffic {
    fn sent(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn received(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A connection that counts as open until this is dropped.
struct Open<'traffic>(&'traffic Traffic);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets init connect to the port inside and passes bytes on. Where nobody listens there, the client finds its connection
/// reset, as close to refused as what was accepted can come.
pub(super) async fn serve(stream: TcpStream, inside: NonZeroU16, init: &Connection, traffic: &Traffic) {
    let _open = traffic.enter();
    match timeout(PATIENCE, dial(inside, init)).await {
        Ok(Ok(Some(carrier))) => relay(stream, carrier, traffic).await,
        Ok(Ok(None) | Err(_)) | Err(_) => reset(stream),
    }
}

async fn dial(inside: NonZeroU16, init: &Connection) -> Result<Option<Carrier>, LaneError> {
    let Channel { mut messages, input, output, handle, .. } = init.open().map_err(|_| LaneError::Closed)?;
    let ask = Some(Ask::Dial(Dial { port: inside.get().into() }));
    messages.sender.send_message(&Request { version: VERSION, ask }).await?;
    let dialled = messages.receiver.next_message::<Dialled>().await?;
    let connected = dialled.is_some_and(|dialled| dialled.errno == 0);
    Ok(connected.then(|| Carrier { sender: input.sender, receiver: output.receiver, handle }))
}
