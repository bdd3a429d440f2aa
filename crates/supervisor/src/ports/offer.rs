//! Ports that are offered to a running sandbox, over a socket of their own: control connections carry bytes alone. Only
//! the owner reaches it, as only the owner enters the directory that it is in.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use handover::{OfferedPort, PortAnswer, receive_port};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{BREATH, Ports};

/// How long whoever offers a port may take: on a busy machine somebody who has connected may not get to say more for a while.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many are heard at once, so that whoever says nothing is not waited for by others.
const OFFERS: usize = 16;

/// Takes ports for ever. Nobody is heard any more who was not before this ends.
pub(crate) async fn take(listener: UnixListener, ports: &Arc<Ports>) {
    let mut offers = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if offers.len() < OFFERS => accepted,
            Some(_) = offers.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            sleep(BREATH).await;
            continue;
        };
        let ports = Arc::clone(ports);
        offers.spawn(async move { timeout(PATIENCE, hear(stream, &ports)).await });
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
