//! One connection from inside, in a straight line: whom is it for, may it be, and then bytes both ways.

use std::net::IpAddr;
use std::num::NonZeroU16;

use policy::network::Refusal;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::call::{Call, Wanted, refuse, reset};
use crate::dns;
use crate::gateway::Gateway;
use crate::seen::Peer;

/// Serves one connection to its end. Where there is no place for it, that is all that is said.
///
/// Every address is one of the sandbox's own, so where a client meant to connect to is where its connection is. What is for
/// the sandbox's own loopback is decided on as an address like any other, and no policy allows that one.
pub(crate) async fn serve(gateway: &Gateway, inner: TcpStream, place: Option<OwnedSemaphorePermit>) {
    let Ok(destination) = inner.local_addr() else { return reset(&inner) };
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

/// A name that was asked for has its address to itself.
fn identify(gateway: &Gateway, address: IpAddr) -> Peer {
    match address {
        IpAddr::V4(v4) => gateway.names().name(v4).map_or(Peer::Address(address), Peer::Name),
        IpAddr::V6(_) => Peer::Address(address),
    }
}
