//! The gateway of one sandbox: what it knows, and the sockets that it serves.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::Size;
use policy::network::NetworkPolicy;
use rustix::net::sockopt;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::accept;
use crate::carry::{Meter, Pipes};
use crate::connection;
use crate::conversation::Traffic;
use crate::dns;
use crate::limits::Limits;
use crate::names::Names;
use crate::own::OwnAddresses;
use crate::pace::Pace;
use crate::resolve::Resolver;
use crate::seen::Witness;
use crate::weaken::Weaken;

/// Sockets in the sandbox's network, which whoever means to leave it comes to.
#[derive(Debug)]
pub struct Entrance {
    /// Those that connections come to.
    pub connections: Vec<OwnedFd>,
    /// The one that questions for names come to.
    pub questions: OwnedFd,
}

/// The only way out of a sandbox.
#[derive(Debug)]
pub struct Gateway {
    policy: watch::Sender<Arc<NetworkPolicy>>,
    names: Mutex<Names>,
    pub(crate) resolver: Resolver,
    pub(crate) own: OwnAddresses,
    pub(crate) witness: Arc<dyn Witness>,
    pub(crate) limits: Limits,
    pub(crate) pipes: Arc<Pipes>,
    /// Out of the sandbox, and into it.
    paces: (Arc<Pace>, Arc<Pace>),
    pub(crate) weaken: Weaken,
    places: Arc<Semaphore>,
    numbers: AtomicU64,
}

impl Gateway {
    /// The gateway of a sandbox of which this may leave.
    #[must_use]
    pub fn new(policy: NetworkPolicy, limits: Limits, witness: Arc<dyn Witness>) -> Self {
        let pace = || Arc::new(Pace::new(policy.bandwidth.map(Size::as_bytes)));
        Self {
            paces: (pace(), pace()),
            policy: watch::Sender::new(Arc::new(policy)),
            names: Mutex::new(Names::new(Instant::now().into_std())),
            resolver: Resolver::default(),
            own: OwnAddresses::default(),
            witness,
            limits,
            pipes: Arc::default(),
            weaken: Weaken::here(),
            places: Arc::new(Semaphore::new(limits.connections)),
            numbers: AtomicU64::new(0),
        }
    }

    /// The same with pipes that others use as well: all are descriptors of one process.
    pub(crate) fn sharing(self, pipes: Arc<Pipes>) -> Self {
        Self { pipes, ..self }
    }

    /// What may leave now.
    #[must_use]
    pub fn policy(&self) -> Arc<NetworkPolicy> {
        Arc::clone(&self.policy.borrow())
    }

    /// From now on only this may leave: what is open and no longer may be is cut.
    pub fn set_policy(&self, policy: NetworkPolicy) {
        for pace in [&self.paces.0, &self.paces.1] {
            pace.set(policy.bandwidth.map(Size::as_bytes));
        }
        self.policy.send_replace(Arc::new(policy));
    }

    /// Resolves when no connection is left, after those who serve them were dropped.
    pub async fn emptied(&self) {
        let all = u32::try_from(self.limits.connections).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }

    /// Hears of new policies.
    pub(crate) fn policies(&self) -> watch::Receiver<Arc<NetworkPolicy>> {
        self.policy.subscribe()
    }

    /// A name is there with its address or not at all, so poison is ignored.
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// What a new connection is counted by.
    pub(crate) fn traffic(&self) -> Arc<Traffic> {
        let (sent, received) = &self.paces;
        Arc::new(Traffic { sent: Meter::at(sent), received: Meter::at(received) })
    }

    /// A place for one more connection, while there is one.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Serves what comes to an entrance, until it is dropped; so are its connections then.
    pub async fn serve(self: &Arc<Self>, entrance: Entrance) -> io::Result<()> {
        let Entrance { connections, questions } = entrance;
        let mut listening = JoinSet::new();
        for listener in connections {
            listening.spawn(Arc::clone(self).take(async_listener(listener)?));
        }
        let questions = std::net::UdpSocket::from(questions);
        questions.set_nonblocking(true)?;
        dns::by_udp(self, UdpSocket::from_std(questions)?).await;
        Ok(())
    }

    /// Serves what comes to one socket.
    async fn take(self: Arc<Self>, listener: TcpListener) {
        accept::each(listener, |stream, _| {
            let (gateway, place) = (Arc::clone(&self), self.place());
            async move { connection::serve(&gateway, stream, place).await }
        })
        .await;
    }
}

fn async_listener(listener: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    // What is small is not held back on any of its connections: that is for those at both ends to decide.
    sockopt::set_tcp_nodelay(&listener, true)?;
    TcpListener::from_std(listener)
}
