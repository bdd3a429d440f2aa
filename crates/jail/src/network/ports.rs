//! A network on a kernel without rules for packets. Nothing is led anywhere: there is a socket for each port that the policy
//! names, at every address, and the one for questions is where the sandbox's resolv.conf says. Whoever connects to another
//! port is refused by the kernel at once, as nobody listens there; so is every datagram.
//!
//! Nobody inside can have these ports, as none of the sockets shares its place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};

use policy::Isolation;
use policy::network::{HOST_ALIAS, NetworkPolicy};

use super::{HandedOut, PORT, Use, answer_on, listen_on};
use crate::sys::{self, Errno, Outcome};

/// The most ports of a policy, so that all their sockets go out at once, of both families.
pub(crate) const MOST_PORTS: usize = 64;

/// All sockets: that for questions, and one for each port and for questions by TCP in each family.
pub const MOST_HANDED_OUT: usize = 1 + 2 * (MOST_PORTS + 1);

/// What is done where the kernel has no rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// These ports are listened on.
    Ports(Vec<u16>),
    /// Nothing is started, as everything was asked for.
    Strict,
    /// Nothing is started, as there are so many ports.
    TooMany(usize),
}

impl Fallback {
    pub(crate) fn new(isolation: Isolation, policy: &NetworkPolicy) -> Self {
        let mut ports = policy.named_ports();
        // By TCP questions come as every connection does.
        ports.insert(PORT);
        match isolation {
            Isolation::Strict => Self::Strict,
            Isolation::BestEffort if ports.len() > MOST_PORTS + 1 => Self::TooMany(ports.len() - 1),
            Isolation::BestEffort => Self::Ports(ports.into_iter().collect()),
        }
    }

    /// As the builder reads it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ports(ports) => ports.iter().flat_map(|port| port.to_le_bytes()).collect(),
            Self::Strict | Self::TooMany(_) => Vec::new(),
        }
    }
}

/// Opens all sockets and hands them out at once, the one for questions first. After clone.
pub(super) fn hand_out(ports: &[u8], places: &[IpAddr], gate: RawFd) -> Outcome {
    let mut sockets = [const { None::<OwnedFd> }; MOST_HANDED_OUT];
    let mut free = sockets.iter_mut();
    let mut keep = |socket| {
        *free.next().ok_or(Errno(libc::E2BIG))? = Some(socket);
        Ok(())
    };
    keep(answer_on(SocketAddr::new(HOST_ALIAS.into(), PORT), Use::Straight)?)?;
    for port in ports.chunks_exact(2) {
        let port = u16::from_le_bytes([port[0], port[1]]);
        for place in places {
            let anywhere: IpAddr = match place {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            keep(listen_on(SocketAddr::new(anywhere, port), Use::Straight)?)?;
        }
    }
    let opened = || sockets.iter().flatten().map(OwnedFd::as_fd);
    let mut all = [opened().next().ok_or(Errno(libc::EBADF))?; MOST_HANDED_OUT];
    all.iter_mut().zip(opened()).for_each(|(place, socket)| *place = socket);
    sys::hand_out(gate, HandedOut::ByPorts, &all[..opened().count()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(count: u16) -> NetworkPolicy {
        let rule = |port: u16| format!("a.example:{port}").parse().unwrap();
        NetworkPolicy { allow: (1000..1000 + count).map(rule).collect(), ..NetworkPolicy::default() }
    }

    #[test]
    fn ports_are_bounded_and_strict_has_none() {
        let few = Fallback::new(Isolation::BestEffort, &policy(1));
        assert_eq!(few, Fallback::Ports(vec![53, 80, 443, 1000]));
        assert_eq!(few.bytes(), [53, 0, 80, 0, 187, 1, 232, 3]);
        let most = Fallback::new(Isolation::BestEffort, &policy(62));
        assert!(
            matches!(&most, Fallback::Ports(ports) if 1 + 2 * ports.len() == MOST_HANDED_OUT),
            "{most:?}"
        );
        assert_eq!(Fallback::new(Isolation::BestEffort, &policy(63)), Fallback::TooMany(65));
        assert_eq!(Fallback::new(Isolation::Strict, &policy(1)), Fallback::Strict);
        assert_eq!(Fallback::Strict.bytes(), [0; 0]);
    }

    #[test]
    fn what_is_refused_is_not_taken_for_absent() {
        for errno in [libc::EPROTONOSUPPORT, libc::EOPNOTSUPP, libc::EAFNOSUPPORT, libc::ENOENT] {
            assert!(super::super::are_rules_absent(errno));
        }
        for errno in [0, libc::EPERM, libc::EACCES, libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM, libc::EINVAL] {
            assert!(!super::super::are_rules_absent(errno));
        }
    }
}
