//! A connection to a port inside, for whoever is outside. Init connects as any process inside could, and nothing
//! but bytes passes.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::{Carrier, Channel, Dial, Dialled, relay};

/// How long a program inside may take to have room for one more connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects and passes bytes on until both directions have ended.
pub(crate) async fn serve(dial: Dial, channel: Channel) {
    let Channel { mut messages, input, output, handle, .. } = channel;
    let connected = tokio::select! {
        connected = connect(dial) => connected,
        () = handle.closed() => return,
    };
    let errno = connected.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    if messages.sender.send_message(&Dialled { errno }).await.is_err() {
        return;
    }
    if let Ok(stream) = connected {
        relay(stream, Carrier { sender: output.sender, receiver: input.receiver, handle }, &()).await;
    }
}

/// On the one loopback or the other; where it is on neither, what the first said.
async fn connect(dial: Dial) -> io::Result<TcpStream> {
    let port = u16::try_from(dial.port).ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    match connect_to((Ipv4Addr::LOCALHOST, port).into()).await {
        Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {
            connect_to((Ipv6Addr::LOCALHOST, port).into()).await.map_err(|_| error)
        }
        connected => connected,
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(connected) => connected?,
        Err(_) => return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)),
    };
    // Where nobody listens, the kernel may choose the very port for our own end, and connects us to ourselves.
    if stream.local_addr()? == address {
        return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
    }
    Ok(stream)
}
