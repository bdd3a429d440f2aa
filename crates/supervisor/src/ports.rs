//! Published ports: sockets that the owner made to listen on the host, each leading to one port inside. The supervisor
//! makes none itself. Nothing is accepted of which there is no record, and all of it ends with the sandbox.

mod offer;
mod traffic;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::{Event, PortChange};
use handover::{OfferedPort, PortAnswer};
use policy::PORTS_LIMIT;
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_protocol};
use rustix::net::{AddressFamily, ipproto};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use wire::{Connection, PortState};

use crate::idle::Users;
use crate::record::{Record, RecordError};

pub(crate) use offer::take;
use traffic::{Traffic, serve};

/// How many connections of one sandbox's ports are served at once. Of those beyond, each port accepts one and leaves the
/// others to the kernel.
const CONNECTIONS: usize = 256;

/// How long nothing is accepted after the kernel could not give a connection.
const BREATH: Duration = Duration::from_millis(100);

/// All published ports of a sandbox.
#[derive(Debug)]
pub(crate) struct Ports {
    init: Connection,
    record: Arc<Record>,
    users: Users,
    places: Arc<Semaphore>,
    table: Mutex<BTreeMap<SocketAddr, Port>>,
}

#[derive(Debug)]
struct Port {
    inside: NonZeroU16,
    traffic: Arc<Traffic>,
    accepting: JoinHandle<()>,
}

/// Why a port is not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    #[error("it is no listening TCP socket")]
    Unusable(#[from] io::Error),
    #[error("{0} is published already")]
    Taken(SocketAddr),
    #[error("{PORTS_LIMIT} ports are published already")]
    Full,
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl PublishError {
    const fn answer(&self) -> PortAnswer {
        match self {
            Self::Unusable(_) => PortAnswer::Unusable,
            Self::Taken(_) => PortAnswer::Taken,
            Self::Full => PortAnswer::Full,
            Self::Record(_) => PortAnswer::Unrecorded,
        }
    }
}

impl Ports {
    pub(crate) fn new(init: Connection, record: Arc<Record>, users: Users) -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        Self { init, record, users, places, table: Mutex::default() }
    }

    /// Nothing that could break is ever half done under this lock, so poison is ignored.
    fn table(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Port>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a port, once it is on record.
    pub(crate) fn add(&self, OfferedPort { listener, inside }: OfferedPort) -> Result<(), PublishError> {
        let listener = listening(listener)?;
        let address = listener.local_addr()?;
        let mut table = self.table();
        if table.contains_key(&address) {
            return Err(PublishError::Taken(address));
        }
        if table.len() >= PORTS_LIMIT {
            return Err(PublishError::Full);
        }
        self.record.put(&event(PortChange::Added, address))?;
        let traffic = Arc::default();
        let entrance = Entrance {
            listener,
            inside,
            init: self.init.clone(),
            users: self.users.clone(),
            places: Arc::clone(&self.places),
            traffic: Arc::clone(&traffic),
        };
        table.insert(address, Port { inside, traffic, accepting: tokio::spawn(entrance.accept()) });
        Ok(())
    }

    /// Closes a port and its connections: whether there was such a port.
    pub(crate) async fn remove(&self, address: SocketAddr) -> bool {
        let Some(port) = self.table().remove(&address) else { return false };
        port.close().await;
        // What is closed stays closed, also where there is no room to say so.
        let _ = self.record.put(&event(PortChange::Removed, address));
        true
    }

    /// Closes all, as the sandbox ends. The keeper must not be told before: a sandbox that is started again at once
    /// wants the same addresses.
    pub(crate) async fn close(&self) {
        let ports = std::mem::take(&mut *self.table());
        for port in ports.into_values() {
            port.close().await;
        }
    }

    /// Each of them.
    pub(crate) fn states(&self) -> Vec<PortState> {
        self.table().iter().map(|(address, port)| port.traffic.state(*address, port.inside)).collect()
    }
}

impl Port {
    /// Ends the task that accepts, and waits until it is gone with all that it held.
    async fn close(self) {
        self.accepting.abort();
        let _ = self.accepting.await;
    }
}

fn event(what: PortChange, address: SocketAddr) -> Event {
    Event::Port { what, address: address.ip(), port: address.port() }
}

/// A descriptor as what it should be; whatever else it is is closed.
fn listening(descriptor: OwnedFd) -> io::Result<TcpListener> {
    let family = socket_domain(&descriptor)?;
    let is_internet = family == AddressFamily::INET || family == AddressFamily::INET6;
    let is_tcp = socket_protocol(&descriptor)? == Some(ipproto::TCP);
    if !is_internet || !is_tcp || !socket_acceptconn(&descriptor)? {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let listener = std::net::TcpListener::from(descriptor);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// One port's listening socket and all that its connections need.
struct Entrance {
    listener: TcpListener,
    inside: NonZeroU16,
    init: Connection,
    users: Users,
    places: Arc<Semaphore>,
    traffic: Arc<Traffic>,
}

impl Entrance {
    /// Accepts until it is aborted; its connections end with it.
    async fn accept(self) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            let (init, traffic, inside) = (self.init.clone(), Arc::clone(&self.traffic), self.inside);
            let user = self.users.add();
            connections.spawn(async move {
                serve(stream, inside, &init, &traffic).await;
                drop((place, user));
            });
        }
    }
}
