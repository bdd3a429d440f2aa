//! One client, in a straight line: what does it ask for, who is it, may it, and then as a sandbox's connection.

use std::net::SocketAddr;
use std::sync::Arc;

use policy::network::{NetworkPolicy, Refusal, Rule, Target};
use tokio::net::TcpStream;

use crate::call::{Call, Wanted, refuse};
use crate::http::{Aim, Blocked, Errand, Host, Status, look_ahead, say_last, take_head};
use crate::seen::Peer;

use super::Proxy;
use super::forward::forward;
use super::holders::Holder;

/// What a client hears when its tunnel is there.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Serves one client to its end.
pub(super) async fn serve(proxy: &Proxy, client: &TcpStream, from: SocketAddr) {
    let _ = client.set_nodelay(true);
    let mut held = Vec::new();
    loop {
        match errand(proxy, client, held).await {
            Ok(Some(rest)) => held = rest,
            Ok(None) => return,
            Err(Turned { blocked, unknown }) => {
                if let Some(refusal) = unknown {
                    proxy.book.turned_away(from, refusal);
                }
                return say_last(client, &blocked.response()).await;
            }
        }
    }
}

/// A client that is turned away.
struct Turned {
    blocked: Blocked,
    /// Why, where nobody's record has it yet.
    unknown: Option<Refusal>,
}

impl Turned {
    fn stranger(refusal: Refusal) -> Self {
        Self { blocked: Blocked::new(refusal, status(refusal)), unknown: Some(refusal) }
    }

    fn with_hint(mut self, hint: &str) -> Self {
        hint.clone_into(&mut self.blocked.hint);
        self
    }

    /// One who is known, and has been put on record.
    fn known(refusal: Refusal, wanted: &Wanted, policy: &NetworkPolicy) -> Self {
        let mut blocked = Blocked::new(refusal, status(refusal));
        let (host, port) = (wanted.peer.to_string(), wanted.port.get());
        match refusal.remedy(&host, port) {
            Some(option) => blocked.hint = format!("to allow it: agentbox proxy token {option}"),
            None if status(refusal) == Status::Forbidden => {
                "no token allows it, or not this one; ask whoever made it".clone_into(&mut blocked.hint);
            }
            None => {}
        }
        blocked.rule = deciding(refusal, wanted, policy);
        blocked.host = Some(host);
        Self { blocked, unknown: None }
    }
}

/// What one request comes to: what the client has said beyond it and goes elsewhere, where it goes on.
async fn errand(proxy: &Proxy, client: &TcpStream, held: Vec<u8>) -> Result<Option<Vec<u8>>, Turned> {
    let head = look_ahead(client, &held, proxy.limits.head).await.map_err(Turned::stranger)?;
    let Some(head) = head else { return Ok(None) };
    let malformed = || Turned::stranger(Refusal::MalformedRequest);
    let Errand { authorization, aim } = Errand::parse(&head).ok_or_else(malformed)?;
    let (host, port, is_tunnel) = match aim {
        Aim::Tunnel(host, port) => (host, port, true),
        Aim::Request(host, port) => (host, port, false),
        Aim::Secure => {
            let hint = "ask for a tunnel with CONNECT, as clients do that know of a proxy for https";
            return Err(Turned::stranger(Refusal::NeedsTunnel).with_hint(hint));
        }
        Aim::Here => {
            let hint =
                "this is a proxy: name it in HTTPS_PROXY and HTTP_PROXY, as `agentbox proxy token` prints it";
            return Err(Turned::stranger(Refusal::NotForProxy).with_hint(hint));
        }
    };
    let holder = proxy.admit(authorization).map_err(Turned::stranger)?;
    let wanted = Wanted { peer: peer(host), port };
    let gateway = &holder.gateway;
    let known = |refusal| Turned::known(refusal, &wanted, &gateway.policy());
    let place = gateway.place();
    if place.is_none() {
        return Err(known(refuse(gateway, &wanted, Refusal::TooManyConnections)));
    }
    let call = Call::make(gateway, &wanted).await.map_err(known)?;
    if !is_tunnel {
        return Ok(forward(proxy, &holder, &call, client, held).await);
    }
    // What stands behind the head is for the host, and was not taken with it.
    if take_head(client, head.len()).await.is_some() {
        tunnel(&holder, &call, client).await;
    }
    Ok(None)
}

fn peer(host: Host) -> Peer {
    match host {
        Host::Name(name) => Peer::Name(Arc::new(name)),
        Host::Address(address) => Peer::Address(address),
    }
}

/// Says that the way is open, and holds the conversation.
async fn tunnel(holder: &Holder, call: &Call<'_>, client: &TcpStream) {
    let conversation = call.conversation(client);
    let opened = async {
        conversation.answer(ESTABLISHED).await;
        conversation.hold(call.languages()).await
    };
    call.hold(client, opened, holder.expired()).await;
}

/// The status that a client is told a refusal with.
const fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::TokenMissing | Refusal::TokenInvalid | Refusal::TokenNotYet | Refusal::TokenExpired => {
            Status::ProxyAuthentication
        }
        Refusal::MalformedRequest | Refusal::NotForProxy | Refusal::NeedsTunnel => Status::BadRequest,
        Refusal::Stalled => Status::Timeout,
        Refusal::NoSuchHost | Refusal::NotResolved | Refusal::Unreachable | Refusal::RefusedUpstream => {
            Status::BadGateway
        }
        Refusal::TooManyConnections | Refusal::Unrecorded => Status::Unavailable,
        _ => Status::Forbidden,
    }
}

/// The rule by which it was refused, where one is about this host.
fn deciding(refusal: Refusal, wanted: &Wanted, policy: &NetworkPolicy) -> Option<String> {
    let means = |target: &Target| match &wanted.peer {
        Peer::Name(name) => target.has_name(name),
        Peer::Address(address) => target.has_address(*address),
    };
    match refusal {
        Refusal::Denied => policy.deny.iter().find(|target| means(target)).map(ToString::to_string),
        Refusal::PortNotAllowed => {
            policy.allow.iter().find(|Rule { target, .. }| means(target)).map(ToString::to_string)
        }
        _ => None,
    }
}
