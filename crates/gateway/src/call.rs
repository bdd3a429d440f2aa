//! The way from somebody inside to somebody outside: may it be, where is that, and then what goes both ways until either
//! side or the policy ends it. All of it is on record.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use policy::Wall;
use policy::network::{NetworkPolicy, Refusal, Request, Rule, Verdict};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::conversation::{Conversation, Languages, Traffic};
use crate::dial::{self, By, Dialled};
use crate::gateway::Gateway;
use crate::names::Names;
use crate::seen::{Peer, Seen};

/// A port on which a name is spoken to by HTTP and TLS alone.
pub(crate) const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();

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

/// A connection that has been made.
#[derive(Debug)]
pub(crate) struct Call<'serving> {
    gateway: &'serving Gateway,
    wanted: &'serving Wanted,
    way: Way,
    outer: TcpStream,
    address: SocketAddr,
    by: By,
    /// No policy is missed that came since it was decided on.
    policies: watch::Receiver<Arc<NetworkPolicy>>,
    number: u64,
    traffic: Arc<Traffic>,
}

impl<'serving> Call<'serving> {
    /// Decides, finds and dials.
    pub(crate) async fn make(gateway: &'serving Gateway, wanted: &'serving Wanted) -> Result<Self, Refusal> {
        // From here on no policy is missed that comes while somebody is dialled.
        let policies = gateway.policies();
        let dialled = match decide(gateway, wanted) {
            Ok(way) => go(gateway, wanted, way).await.map(|dialled| (dialled, way)),
            Err(refusal) => Err(refusal),
        };
        let (Dialled { stream: outer, address, by }, way) =
            dialled.map_err(|refusal| refuse(gateway, wanted, refusal))?;
        let number = gateway.next_number();
        let traffic = gateway.traffic();
        let opened =
            Seen::Opened { number, peer: &wanted.peer, port: wanted.port, address, traffic: &traffic };
        gateway.witness.see(&opened).map_err(|_| Refusal::Unrecorded)?;
        Ok(Self { gateway, wanted, way, outer, address, by, policies, number, traffic })
    }

    /// What may be spoken, where that is not everything.
    pub(crate) const fn languages(&self) -> Option<Languages> {
        match self.way {
            Way::Name(languages) => Some(languages),
            Way::Service(_) | Way::Address(_) => None,
        }
    }

    /// What is said over it by a client.
    pub(crate) fn conversation<'call>(&'call self, inner: &'call TcpStream) -> Conversation<'call> {
        let Self { gateway, wanted, outer, number, traffic, .. } = self;
        let (number, is_half) = (*number, AtomicBool::new(false));
        Conversation { gateway, number, wanted, streams: (inner, outer), traffic, is_half }
    }

    /// Holds a conversation with a client to its end, or until it is `cut` or no longer allowed: what came of it, where it
    /// was not refused.
    pub(crate) async fn hold<Outcome>(
        &self,
        inner: &TcpStream,
        conversation: impl Future<Output = Result<Outcome, Refusal>>,
        cut: impl Future<Output = Refusal>,
    ) -> Option<Outcome> {
        let outcome = tokio::select! {
            // Before the first byte: a policy may have come while somebody was dialled.
            biased;
            () = self.tightened() => Err(Refusal::NoLongerAllowed),
            refusal = cut => Err(refusal),
            outcome = conversation => outcome,
            () = self.traffic.stands_still(self.gateway.limits.idle) => Err(Refusal::Stalled),
        };
        if outcome.is_err() {
            reset(inner);
            reset(&self.outer);
        }
        let Wanted { peer, port } = self.wanted;
        let refusal = outcome.as_ref().err().copied();
        let _ = self.gateway.witness.see(&Seen::Closed { number: self.number, peer, port: *port, refusal });
        outcome.ok()
    }

    /// Resolves when a new policy does not allow it any more, or allows less of it.
    async fn tightened(&self) {
        let Self { gateway, wanted, way, .. } = self;
        let mut policies = self.policies.clone();
        while policies.changed().await.is_ok() {
            let goes_on = match (decide(gateway, wanted), *way) {
                (Ok(Way::Name(now)), Way::Name(before)) => now >= before,
                (Ok(now), before) => now == before,
                (Err(_), _) => false,
            };
            // Where a proxy found out where the name leads, that is not ours to check.
            let leads = match &wanted.peer {
                Peer::Name(name) if self.by == By::Ourselves && matches!(way, Way::Name(_)) => {
                    let there = Request::Resolved(name, wanted.port, self.address.ip());
                    gateway.policy().decide(&there).is_allowed()
                }
                Peer::Name(_) | Peer::Address(_) => true,
            };
            if !goes_on || !leads {
                return;
            }
        }
    }
}

/// Puts a refusal on record. It is refused, on record or not.
pub(crate) fn refuse(gateway: &Gateway, wanted: &Wanted, refusal: Refusal) -> Refusal {
    let _ = gateway.witness.see(&Seen::Refused { peer: &wanted.peer, port: wanted.port, refusal });
    refusal
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
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public if port == HTTP => {
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

/// Ends a connection at once, so that nobody waits for it.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}
