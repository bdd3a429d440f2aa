//! The sandbox's way out: a gateway on sockets of its network, which come out of it while the walls go up. Nothing is
//! served before they are here, and a sandbox from which none come has no way out.

mod ledger;
mod repeats;

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gateway::{Entrance, Gateway, Limits, Witness};
use jail::{HandedOut, MOST_HANDED_OUT};
use policy::network::NetworkPolicy;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, getsockname, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{JoinHandle, JoinSet};
use wire::{Channel, Flows, LaneError, Net};

use crate::client::{EINVAL, ENOSPC};
use crate::record::Record;

use ledger::Ledger;

/// How long those who serve connections may take to go.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many lines of the table go in one message.
const AT_ONCE: usize = 64;

/// The way out of a sandbox that has one.
#[derive(Debug)]
pub(crate) struct Network {
    gateway: Arc<Gateway>,
    ledger: Arc<Ledger>,
    serving: Mutex<Option<JoinHandle<()>>>,
    /// The ports that lead out, where not all do.
    ports: Arc<OnceLock<Vec<u16>>>,
}

impl Network {
    pub(crate) fn new(policy: NetworkPolicy, record: Arc<Record>) -> Self {
        let ledger = Arc::new(Ledger::new(record));
        let witness: Arc<dyn Witness> = Arc::<Ledger>::clone(&ledger);
        Self {
            gateway: Arc::new(Gateway::new(policy, Limits::of_this_process(), witness)),
            ledger,
            serving: Mutex::default(),
            ports: Arc::default(),
        }
    }

    /// Begins to serve what comes from inside.
    pub(crate) fn open(&self, gate: UnixStream) {
        let (gateway, ledger, ports) =
            (Arc::clone(&self.gateway), Arc::clone(&self.ledger), Arc::clone(&self.ports));
        let serving = tokio::spawn(serve(gate, gateway, move |what, entrance| {
            if what == HandedOut::ByPorts {
                let listening = ports_of(entrance)?;
                // Nothing leaves by a way that is not on record.
                ledger.entrances(&listening).map_err(io::Error::other)?;
                ports.set(listening).map_err(|_| io::ErrorKind::AlreadyExists)?;
            }
            Ok(())
        }));
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(serving);
    }

    /// Cuts everything, as the sandbox ends, and puts on record what is not there yet.
    pub(crate) async fn close(&self) {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(serving) = serving {
            serving.abort();
            let _ = serving.await;
            // What each of them did last is counted.
            let _ = tokio::time::timeout(LAST_WORDS, self.gateway.emptied()).await;
        }
        self.ledger.settle();
    }

    /// Only this may leave from now on, once that is on record; or the error number of why not.
    pub(crate) fn set_policy(&self, json: &str) -> Result<(), i32> {
        let policy: NetworkPolicy = serde_json::from_str(json).map_err(|_| EINVAL)?;
        self.ledger.policy(&policy).map_err(|_| ENOSPC)?;
        self.gateway.set_policy(policy);
        Ok(())
    }

    /// Tells what has been seen, as a sum or line by line, and where that is wanted what is seen from now on.
    pub(crate) async fn tell(&self, channel: &mut Channel, net: Net) -> Result<(), LaneError> {
        let sender = &mut channel.messages.sender;
        if net.total {
            let ports = self.ports.get().into_iter().flatten().map(|port| (*port).into()).collect();
            let total = Some(self.ledger.total());
            return sender.send_message(&Flows { total, ports, ..Flows::default() }).await;
        }
        let mut changes = self.ledger.follow();
        let mut flows = self.ledger.flows();
        loop {
            for some in flows.chunks(AT_ONCE) {
                sender.send_message(&Flows { flows: some.to_vec(), ..Flows::default() }).await?;
            }
            if !net.follow {
                return Ok(());
            }
            flows = match changes.recv().await {
                Ok(flow) => vec![flow],
                Err(RecvError::Lagged(_)) => self.ledger.flows(),
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }
}

/// Serves each entrance as it comes, once it has been noted, until it is dropped.
async fn serve(
    gate: UnixStream,
    gateway: Arc<Gateway>,
    note: impl Fn(HandedOut, &Entrance) -> io::Result<()>,
) {
    let mut entrances = JoinSet::new();
    while let Ok(Some((what, entrance))) = gate.async_io(Interest::READABLE, || receive(&gate)).await {
        if note(what, &entrance).is_err() {
            break;
        }
        let gateway = Arc::clone(&gateway);
        entrances.spawn(async move { gateway.serve(entrance).await });
    }
    drop(gate);
    while entrances.join_next().await.is_some() {}
}

/// Receives the sockets of an entrance, and what they are; none when there are no more.
fn receive(gate: &UnixStream) -> io::Result<Option<(HandedOut, Entrance)>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDED_OUT))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(gate, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut sockets: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            sockets.extend(received);
        }
    }
    let what = HandedOut::of(byte[0]).ok_or(io::ErrorKind::InvalidData)?;
    let (connections, questions) = match what {
        HandedOut::Led => {
            let [connections, questions] = sockets.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
            (vec![connections], questions)
        }
        HandedOut::ByPorts => {
            let mut sockets = sockets.into_iter();
            let questions = sockets.next().ok_or(io::ErrorKind::InvalidData)?;
            (sockets.collect(), questions)
        }
    };
    Ok(Some((what, Entrance { connections, questions })))
}

/// The ports of an entrance, each once whatever the families.
fn ports_of(entrance: &Entrance) -> io::Result<Vec<u16>> {
    let mut ports = BTreeSet::new();
    for socket in &entrance.connections {
        let place = SocketAddr::try_from(getsockname(socket)?)?;
        ports.insert(place.port());
    }
    Ok(ports.into_iter().collect())
}
