//! Which addresses are this machine's own. The kernel is asked: it would send to one of them from itself, or from its
//! loopback. Nothing is sent to find that out.

use std::collections::HashMap;
use std::io::{
    self,
    ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable},
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is remembered: a machine seldom gets another address.
const REMEMBERED: Duration = Duration::from_secs(5);

/// How many are.
const MOST: usize = 256;

/// What has been asked lately.
#[derive(Debug, Default)]
pub(crate) struct OwnAddresses {
    asked: Mutex<HashMap<IpAddr, (bool, Instant)>>,
}

impl OwnAddresses {
    /// Whether an address is this machine's own.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |then: &Instant| now.saturating_duration_since(*then) < REMEMBERED;
        if let Some((is_own, _)) = asked.get(&address).filter(|(_, then)| is_fresh(then)) {
            return *is_own;
        }
        if asked.len() >= MOST {
            asked.clear();
        }
        match is_here(address) {
            Ok(is_own) => {
                asked.insert(address, (is_own, now));
                is_own
            }
            // Where no way leads there is nobody to be reached either; whoever cannot say does not know.
            Err(error) => !matches!(error.kind(), NetworkUnreachable | HostUnreachable | AddrNotAvailable),
        }
    }
}

fn is_here(address: IpAddr) -> io::Result<bool> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, 9))?;
    let source = socket.local_addr()?.ip();
    Ok(source == address || source.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_knows_its_own_addresses() {
        let own = OwnAddresses::default();
        for (address, is_own) in [("127.0.0.1", true), ("127.9.9.9", true), ("203.0.113.77", false)] {
            assert_eq!(
                (own.has(address.parse().unwrap()), own.has(address.parse().unwrap())),
                (is_own, is_own)
            );
        }
    }
}
