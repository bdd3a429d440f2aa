//! The way to a host: its addresses are found out, checked, and exactly one that was checked is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU16;

use policy::Wall;
use policy::network::{HostName, NetworkPolicy, Refusal, Request, Verdict};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gateway::Gateway;
use crate::upstream;

/// A connection to the outside, and where that leads.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
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
        let addresses = gateway.resolver.resolve(name).await?;
        let addresses = check(gateway, name, port, &addresses)?;
        any_of(&addresses).await
    };
    timeout(gateway.limits.dial, find).await.unwrap_or(Err(Refusal::NotResolved))
}

/// Dials an address that the policy has allowed.
pub(crate) async fn by_address(gateway: &Gateway, address: SocketAddr) -> Result<Dialled, Refusal> {
    if is_here(address.ip()) {
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
        _ if is_here(address) => Err(Refusal::OwnAddress),
        _ => Ok(()),
    }
}

/// Connects to the first that answers, those of IPv4 before the others: more of the world has that.
pub(crate) async fn any_of(addresses: &[SocketAddr]) -> Result<Dialled, Refusal> {
    let mut addresses = addresses.to_vec();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    for address in addresses {
        if let Ok(stream) = TcpStream::connect(address).await {
            // What is small is not held back: that is for those at both ends to decide.
            let _ = stream.set_nodelay(true);
            return Ok(Dialled { stream, address });
        }
    }
    Err(Refusal::Unreachable)
}

/// Whether an address is one of this machine's own: the kernel would send to it from itself, or from its loopback. Nothing
/// is sent to find that out.
pub(crate) fn is_here(address: IpAddr) -> bool {
    let source = || -> io::Result<IpAddr> {
        let any: IpAddr = match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    // Where no way leads there is nobody to be reached either.
    source().is_ok_and(|source| source == address || source.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_knows_its_own_addresses() {
        assert!(is_here("127.0.0.1".parse().unwrap()));
        assert!(is_here("127.9.9.9".parse().unwrap()));
        assert!(!is_here("203.0.113.77".parse().unwrap()));
    }
}
