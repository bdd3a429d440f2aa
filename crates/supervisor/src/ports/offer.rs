//! Ports that are offered to a running sandbox, over a socket of their own: control connections carry bytes alone. Only
//! the owner reaches it, as only the owner enters the directory that it is in.

use std::io;
use std::time::Duration;

use handover::{OfferedPort, PortAnswer, receive_port};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::{BREATH, Ports};

/// How long whoever offers a port may take. They come one after the other.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes ports for ever.
pub(crate) async fn take(listener: UnixListener, ports: &Ports) {
    loop {
        match listener.accept().await {
            // Whoever says nothing, or nonsense, or leaves, is not waited for.
            Ok((stream, _)) => drop(timeout(PATIENCE, hear(stream, ports)).await),
            Err(_) => sleep(BREATH).await,
        }
    }
}

async fn hear(mut stream: UnixStream, ports: &Ports) -> io::Result<()> {
    let answer = match receive(&stream).await? {
        Some(offered) => ports.add(offered).map_or_else(|error| error.answer(), |()| PortAnswer::Published),
        None => PortAnswer::Unusable,
    };
    stream.write_all(&[answer as u8]).await
}

async fn receive(stream: &UnixStream) -> io::Result<Option<OfferedPort>> {
    loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, || receive_port(stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received,
        }
    }
}
