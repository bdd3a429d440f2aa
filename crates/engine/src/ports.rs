//! Published ports, from the owner's side: here they are bound, with the owner's rights, before anything else is done;
//! the supervisor is handed the sockets.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use handover::{PORTS_SOCKET, PortAnswer, offer_port};
use policy::{HostPort, PublishedPort, SandboxId};
use wire::{Ask, PortState, PortStates, Ports, Unpublish, Unpublished};

use crate::ask::silent;
use crate::error::EngineError;
use crate::start::Engine;

/// How many connections wait to be accepted.
const BACKLOG: i32 = 512;

/// How long a supervisor may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the supervisor of a sandbox that has just ended may still hold its ports.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Listens on the host for a port. The socket is nobody's but this process's until it is handed over.
fn listen(port: PublishedPort) -> Result<TcpListener, EngineError> {
    let unusable = |source| EngineError::Publish { host: port.host, source };
    let listener = TcpListener::bind(SocketAddr::from(port.host)).map_err(unusable)?;
    rustix::net::listen(&listener, BACKLOG).map_err(|errno| unusable(errno.into()))?;
    Ok(listener)
}

/// Listens for all of them, or for none.
pub(crate) fn listen_for(ports: &[PublishedPort]) -> Result<Vec<TcpListener>, EngineError> {
    ports.iter().copied().map(listen).collect()
}

/// Where sockets listen, as the kernel chose.
pub(crate) fn addresses(listeners: &[TcpListener]) -> Result<Vec<SocketAddr>, EngineError> {
    let addresses = listeners.iter().map(TcpListener::local_addr);
    addresses.collect::<io::Result<_>>().map_err(EngineError::Keeper)
}

/// Waits while ports are taken which a sandbox had that has just ended.
pub(crate) fn wait_for(ports: &[PublishedPort]) {
    let deadline = Instant::now() + LAST_WORDS;
    let taken = |error: &EngineError| matches!(error, EngineError::Publish { source, .. } if source.kind() == io::ErrorKind::AddrInUse);
    while listen_for(ports).is_err_and(|error| taken(&error)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Engine {
    /// Publishes a port of a running sandbox, until that ends: where it is reached.
    pub fn publish(&self, id: &SandboxId, port: PublishedPort) -> Result<SocketAddr, EngineError> {
        if !self.is_running(id) {
            return Err(EngineError::NotRunning(id.to_string()));
        }
        let listener = listen(port)?;
        let address = listener.local_addr().map_err(silent(id))?;
        let answer = self.offer(id, &listener, port).map_err(silent(id))?;
        match answer {
            PortAnswer::Published => Ok(address),
            answer => Err(EngineError::NotPublished { host: port.host, answer }),
        }
    }

    fn offer(&self, id: &SandboxId, listener: &TcpListener, port: PublishedPort) -> io::Result<PortAnswer> {
        let path = self.runtime(id).join(PORTS_SOCKET);
        let mut socket = self.patiently(id, || UnixStream::connect(&path))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        offer_port(&socket, listener, port.inside)?;
        let mut answer = [0];
        socket.read_exact(&mut answer)?;
        PortAnswer::from_byte(answer[0]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The published ports of a running sandbox.
    pub async fn ports(&self, id: &SandboxId) -> Result<Vec<PortState>, EngineError> {
        let mut asked = self.ask(id, Ask::Ports(Ports {})).await?;
        let states = asked.channel.messages.receiver.next_message::<PortStates>().await;
        Ok(states.map_err(io::Error::other).map_err(silent(id))?.unwrap_or_default().ports)
    }

    /// Closes a published port of a running sandbox, with its connections.
    pub async fn unpublish(&self, id: &SandboxId, host: HostPort) -> Result<(), EngineError> {
        let mut asked = self.ask(id, Ask::Unpublish(Unpublish { host: host.to_string() })).await?;
        let answer = asked.channel.messages.receiver.next_message::<Unpublished>().await;
        let found = answer.map_err(io::Error::other).map_err(silent(id))?.is_some_and(|answer| answer.found);
        if found { Ok(()) } else { Err(EngineError::NoPort { id: id.to_string(), host }) }
    }
}
