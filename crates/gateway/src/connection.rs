//! One connection from inside, in a straight line: whom is it for, may it be, where is that, and then bytes both ways until
//! either side or the policy ends it.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use policy::Wall;
use policy::network::{NetworkPolicy, Refusal, Request, Rule, Verdict};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::conversation::{Conversation, Languages};
use crate::dial::{self, By, Dialled};
use crate::dns;
use crate::gateway::Gateway;
use crate::names::Names;
use crate::seen::{Peer, Seen};

/// A port on which a name is spoken to by HTTP and TLS alone.
const HTTP: u16 = 80;

/// Whom a connection is for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) peer: Peer,
    pub(crate) port: NonZeroU16,
}

/// How it may go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To a service of the host's.
    Service(SocketAddr),
    /// To this address.
    Address(SocketAddr),
    /// To the host of that name.
    Name(Languages),
}

/// Serves one connection to its end. Where there is no place for it, that is all that is said.
pub(crate) async fn serve(
    gateway: &Gateway,
    (inner, client): (TcpStream, SocketAddr),
    place: Option<OwnedSemaphorePermit>,
) {
    let Some(destination) = destination(&inner, client) else { return reset(&inner) };
    if destination.port() == dns::PORT && place.is_some() {
        let _ = dns::by_tcp(gateway, inner).await;
        return;
    }
    let Some(port) = NonZeroU16::new(destination.port()) else { return reset(&inner) };
    // From here on no policy is missed that comes while somebody is dialled.
    let policies = gateway.policies();
    let wanted = Wanted { peer: identify(gateway, destination.ip()), port };
    let way = match place {
        Some(_) => decide(gateway, &wanted),
        None => Err(Refusal::TooManyConnections),
    };
    let dialled = match way {
        Ok(way) => go(gateway, &wanted, way).await.map(|dialled| (dialled, way)),
        Err(refusal) => Err(refusal),
    };
    let (Dialled { stream: outer, address, by }, way) = match dialled {
        Ok(dialled) => dialled,
        Err(refusal) => {
            reset(&inner);
            let seen = Seen::Refused { peer: &wanted.peer, port, refusal };
            // It is refused, on record or not.
            let _ = gateway.witness.see(&seen);
            return;
        }
    };
    let number = gateway.next_number();
    let traffic = Arc::default();
    let opened = Seen::Opened { number, peer: &wanted.peer, port, address, traffic: &traffic };
    if gateway.witness.see(&opened).is_err() {
        return reset(&inner);
    }
    let languages = match way {
        Way::Name(languages) => Some(languages),
        Way::Service(_) | Way::Address(_) => None,
    };
    let streams = (&inner, &outer);
    let conversation = Conversation {
        gateway,
        number,
        wanted: &wanted,
        streams,
        traffic: &traffic,
        is_half: AtomicBool::new(false),
    };
    let refusal = tokio::select! {
        // Before the first byte: a policy may have come while somebody was dialled.
        biased;
        () = tightened(gateway, &wanted, (way, address, by), policies) => Some(Refusal::NoLongerAllowed),
        outcome = conversation.hold(languages) => outcome.err(),
        () = traffic.stands_still(gateway.limits.idle) => Some(Refusal::Stalled),
    };
    if refusal.is_some() {
        reset(&inner);
        reset(&outer);
    }
    let closed = Seen::Closed { number, peer: &wanted.peer, port, refusal };
    let _ = gateway.witness.see(&closed);
}

/// Where the client meant to connect to, before it was led here.
fn destination(inner: &TcpStream, client: SocketAddr) -> Option<SocketAddr> {
    match client {
        SocketAddr::V4(_) => sockopt::ip_original_dst(inner).map(SocketAddr::V4).ok(),
        SocketAddr::V6(_) => sockopt::ipv6_original_dst(inner).map(SocketAddr::V6).ok(),
    }
}

/// A name that was asked for has its address to itself.
fn identify(gateway: &Gateway, address: IpAddr) -> Peer {
    match address {
        IpAddr::V4(v4) => gateway.names().name(v4).map_or(Peer::Address(address), Peer::Name),
        IpAddr::V6(_) => Peer::Address(address),
    }
}

fn decide(gateway: &Gateway, wanted: &Wanted) -> Result<Way, Refusal> {
    let policy = gateway.policy();
    let port = wanted.port;
    match &wanted.peer {
        Peer::Name(name) => match policy.decide(&Request::Connect(name, port)) {
            Verdict::Refused(_) if !gateway.weaken.keeps(Wall::Egress) => Ok(Way::Name(Languages::All)),
            Verdict::Refused(refusal) => Err(refusal),
            Verdict::Service(service) => Ok(Way::Service(service.address)),
            Verdict::Rule(Rule { http: Some(_), .. }) => Ok(Way::Name(Languages::Http)),
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public if port.get() == HTTP => {
                Ok(Way::Name(Languages::Web))
            }
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public => Ok(Way::Name(Languages::All)),
        },
        Peer::Address(IpAddr::V4(address)) if Names::are_at(*address) => Err(Refusal::NeverAsked),
        Peer::Address(address) => match policy.decide(&Request::Raw(*address, port)) {
            Verdict::Refused(_) if !gateway.weaken.keeps(Wall::Egress) => {
                Ok(Way::Address(SocketAddr::new(*address, port.get())))
            }
            Verdict::Refused(refusal) => Err(refusal),
            Verdict::Service(service) => Ok(Way::Service(service.address)),
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public => {
                Ok(Way::Address(SocketAddr::new(*address, port.get())))
            }
        },
    }
}

async fn go(gateway: &Gateway, wanted: &Wanted, way: Way) -> Result<Dialled, Refusal> {
    match (way, &wanted.peer) {
        (Way::Service(address), _) => dial::to(gateway, address).await,
        (Way::Address(address), _) => dial::by_address(gateway, address).await,
        (Way::Name(_), Peer::Name(name)) => dial::by_name(gateway, name, wanted.port).await,
        (Way::Name(_), Peer::Address(_)) => Err(Refusal::NotAName),
    }
}

/// Resolves when a new policy does not allow it any more, or allows less of it.
async fn tightened(
    gateway: &Gateway,
    wanted: &Wanted,
    (way, address, by): (Way, SocketAddr, By),
    mut policies: watch::Receiver<Arc<NetworkPolicy>>,
) {
    while policies.changed().await.is_ok() {
        let goes_on = match (decide(gateway, wanted), way) {
            (Ok(Way::Name(now)), Way::Name(before)) => now >= before,
            (Ok(now), before) => now == before,
            (Err(_), _) => false,
        };
        // Where a proxy found out where the name leads, that is not ours to check.
        let leads = match &wanted.peer {
            Peer::Name(name) if by == By::Ourselves && matches!(way, Way::Name(_)) => {
                gateway.policy().decide(&Request::Resolved(name, wanted.port, address.ip())).is_allowed()
            }
            Peer::Name(_) | Peer::Address(_) => true,
        };
        if !goes_on || !leads {
            return;
        }
    }
}

/// Ends a connection at once, so that nobody waits for it.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}
