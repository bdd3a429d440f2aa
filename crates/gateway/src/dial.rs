//! The way to a host: its addresses are found out, checked, and exactly one that was checked is connected to.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use policy::Wall;
use policy::network::{HostName, NetworkPolicy, Refusal, Request, Verdict};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gateway::Gateway;
use crate::resolve::Family;
use crate::upstream;

/// How long one address may take to answer.
const EACH: Duration = Duration::from_secs(8);

/// A connection to the outside, and where that leads.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
    pub(crate) by: By,
}

/// Who found out where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// We, and checked it.
    Ourselves,
    /// The owner's own proxy, whose address is the one that is known.
    Upstream,
}

/// Dials a host by its name.
pub(crate) async fn by_name(
    gateway: &Gateway,
    name: &HostName,
    port: NonZeroU16,
) -> Result<Dialled, Refusal> {
    let find = async {
        if let Some(proxy) = &gateway.policy().upstream {
            return upstream::through(gateway, proxy, &format!("{name}:{port}")).await;
        }
        match by_family(gateway, name, port, Family::V4).await {
            Err(Refusal::NoSuchHost | Refusal::Unreachable) => {
                by_family(gateway, name, port, Family::V6).await
            }
            dialled => dialled,
        }
    };
    timeout(gateway.limits.dial, find).await.unwrap_or(Err(Refusal::Unreachable))
}

/// More of the world has addresses of IPv4, so the others are asked for only where those lead nowhere.
async fn by_family(
    gateway: &Gateway,
    name: &HostName,
    port: NonZeroU16,
    family: Family,
) -> Result<Dialled, Refusal> {
    let addresses = gateway.resolver.resolve(name, family).await?;
    let addresses = check(gateway, name, port, &addresses)?;
    any_of(&addresses).await
}

/// Dials an address that the policy has allowed.
pub(crate) async fn by_address(gateway: &Gateway, address: SocketAddr) -> Result<Dialled, Refusal> {
    if gateway.weaken.keeps(Wall::EgressAddresses) && gateway.own.has(address.ip()) {
        return Err(Refusal::OwnAddress);
    }
    match &gateway.policy().upstream {
        Some(proxy) => {
            let authority = address.to_string();
            let through = upstream::through(gateway, proxy, &authority);
            timeout(gateway.limits.dial, through).await.unwrap_or(Err(Refusal::Unreachable))
        }
        None => to(gateway, address).await,
    }
}

/// Dials a service of the host's, which may well be here.
pub(crate) async fn to(gateway: &Gateway, address: SocketAddr) -> Result<Dialled, Refusal> {
    timeout(gateway.limits.dial, any_of(&[address])).await.unwrap_or(Err(Refusal::Unreachable))
}

/// Those of the addresses that may be dialled; where there are none, why not.
fn check(
    gateway: &Gateway,
    name: &HostName,
    port: NonZeroU16,
    addresses: &[IpAddr],
) -> Result<Vec<SocketAddr>, Refusal> {
    let policy = gateway.policy();
    let mut refusal = Refusal::NoSuchHost;
    let mut allowed = Vec::new();
    for address in addresses {
        match may_lead(gateway, &policy, name, port, *address) {
            Ok(()) => allowed.push(SocketAddr::new(*address, port.get())),
            Err(reason) => refusal = reason,
        }
    }
    if allowed.is_empty() { Err(refusal) } else { Ok(allowed) }
}

fn may_lead(
    gateway: &Gateway,
    policy: &NetworkPolicy,
    name: &HostName,
    port: NonZeroU16,
    address: IpAddr,
) -> Result<(), Refusal> {
    if !gateway.weaken.keeps(Wall::EgressAddresses) {
        return Ok(());
    }
    match policy.decide(&Request::Resolved(name, port, address)) {
        Verdict::Refused(refusal) => Err(refusal),
        _ if gateway.own.has(address) => Err(Refusal::OwnAddress),
        _ => Ok(()),
    }
}

/// Connects to the first that answers.
pub(crate) async fn any_of(addresses: &[SocketAddr]) -> Result<Dialled, Refusal> {
    for &address in addresses {
        if let Ok(Ok(stream)) = timeout(EACH, TcpStream::connect(address)).await {
            // What is small is not held back: that is for those at both ends to decide.
            let _ = stream.set_nodelay(true);
            return Ok(Dialled { stream, address, by: By::Ourselves });
        }
    }
    Err(Refusal::Unreachable)
}
