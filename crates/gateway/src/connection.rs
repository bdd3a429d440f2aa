//! One connection from inside, in a straight line: whom is it for, may it be, and then bytes both ways.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use policy::network::Refusal;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::call::{Call, Wanted, refuse, reset};
use crate::dns;
use crate::gateway::{Arrival, Gateway};
use crate::seen::Peer;

/// Serves one connection to its end. Where there is no place for it, that is all that is said.
pub(crate) async fn serve(
    gateway: &Gateway,
    (inner, client): (TcpStream, SocketAddr),
    arrival: Arrival,
    place: Option<OwnedSemaphorePermit>,
) {
    let Some(destination) = destination(&inner, client, arrival) else { return reset(&inner) };
    if destination.port() == dns::PORT && place.is_some() {
        let _ = dns::by_tcp(gateway, inner).await;
        return;
    }
    let Some(port) = NonZeroU16::new(destination.port()) else { return reset(&inner) };
    let wanted = Wanted { peer: identify(gateway, destination.ip()), port };
    let call = match place {
        Some(_) => Call::make(gateway, &wanted).await,
        None => Err(refuse(gateway, &wanted, Refusal::TooManyConnections)),
    };
    let Ok(call) = call else { return reset(&inner) };
    let conversation = call.conversation(&inner);
    // Nothing but the policy cuts it.
    call.hold(&inner, conversation.hold(call.languages()), std::future::pending()).await;
}

/// Where the client meant to connect to. What is for the sandbox's own loopback is decided on as an address like any other,
/// and no policy allows that one.
fn destination(inner: &TcpStream, client: SocketAddr, arrival: Arrival) -> Option<SocketAddr> {
    match (arrival, client) {
        (Arrival::Led, SocketAddr::V4(_)) => sockopt::ip_original_dst(inner).map(SocketAddr::V4).ok(),
        (Arrival::Led, SocketAddr::V6(_)) => sockopt::ipv6_original_dst(inner).map(SocketAddr::V6).ok(),
        (Arrival::Straight, _) => inner.local_addr().ok(),
    }
}

/// A name that was asked for has its address to itself.
fn identify(gateway: &Gateway, address: IpAddr) -> Peer {
    match address {
        IpAddr::V4(v4) => gateway.names().name(v4).map_or(Peer::Address(address), Peer::Name),
        IpAddr::V6(_) => Peer::Address(address),
    }
}
