//! The network of a sandbox that has a way out. It has no device but its loopback: every address is made to be here, and
//! rules of the sandbox's own namespace send every connection and every question for a name to sockets that are opened
//! here and handed out. Whoever holds them decides; without them nothing leads anywhere.
//!
//! Where the kernel has no such rules, there is a socket for each port that the policy names, and nobody on any other.

mod ports;
mod report;
mod routes;
mod rules;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, netlink, socket_with, sockopt};

use crate::builder::{Failure, Phase};
use crate::netlink::tell;
use crate::sys::{self, Errno, Outcome};

pub use ports::MOST_HANDED_OUT;
pub(crate) use ports::{Fallback, MOST_PORTS};
pub(crate) use report::{
    LEAVE_OUT_FULL, LEAVE_OUT_PRIVATE, LEAVE_OUT_UPSTREAM, LOAD, lack, report, report_ports,
};
pub(crate) use rules::batch as rules;

/// The port of the sockets, for connections and for questions. It is one that nobody inside may bind, so it is in
/// nobody's way there.
const PORT: u16 = 1;

/// How many connections wait to be accepted.
const BACKLOG: i32 = 4096;

/// What the kernel is told, in its own words; written before clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wiring<Bytes> {
    /// All addresses of IPv4 are here.
    pub(crate) routes: Bytes,
    /// And all of IPv6.
    pub(crate) routes_v6: Bytes,
    /// What is for elsewhere goes to the sockets.
    pub(crate) rules: Bytes,
    /// The ports to listen on where the kernel has no rules, two bytes each; none where that will not do.
    pub(crate) ports: Bytes,
}

/// What the sockets are that a builder hands out, in the byte that comes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HandedOut {
    /// One for connections and one for questions, to which everything of one family is led.
    Led,
    /// One for questions, and one or two for each port that is served. There are no others.
    ByPorts,
}

impl HandedOut {
    /// What such a byte says.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Led),
            1 => Some(Self::ByPorts),
            _ => None,
        }
    }
}

/// How what leaves comes to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Led {
    /// By rules, all of it.
    ByRules,
    /// Only on the ports that are listened on: the kernel has no rules, and said this.
    ByPorts(Errno),
}

/// Whether the kernel says that it has no such rules: neither the subsystem nor a part of it that they need. Anything
/// else it says is a failure, after which nobody knows what holds.
pub(crate) const fn are_rules_absent(errno: i32) -> bool {
    matches!(errno, libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::ENOENT)
}

impl Wiring<Vec<u8>> {
    pub(crate) fn new(fallback: &Fallback) -> Self {
        Self { routes: routes::v4(), routes_v6: routes::v6(), rules: rules(), ports: fallback.bytes() }
    }

    /// As the builder reads it.
    pub(crate) fn laid(&self) -> Wiring<&[u8]> {
        Wiring { routes: &self.routes, routes_v6: &self.routes_v6, rules: &self.rules, ports: &self.ports }
    }
}

impl Wiring<&[u8]> {
    /// Lays the wires and hands the sockets out at `gate`. After clone, with authority over the network namespace.
    pub(crate) fn lay(&self, gate: RawFd) -> Result<Led, Failure> {
        let at = |phase| move |errno: Errno| Failure { phase, step: 0, errno: errno.0 };
        tell(None, self.routes).map_err(at(Phase::Network))?;
        let both = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        // A machine without IPv6 has no way out by it either.
        let families = if tell(None, self.routes_v6).is_ok() { &both[..] } else { &both[..1] };
        match tell(Some(netlink::NETFILTER), self.rules) {
            Ok(()) => {
                families
                    .iter()
                    .try_for_each(|loopback| hand_out(*loopback, gate))
                    .map_err(at(Phase::Network))?;
                Ok(Led::ByRules)
            }
            // They are added all or none, so nothing of them is in the way.
            Err(errno) if are_rules_absent(errno.0) && !self.ports.is_empty() => {
                ports::hand_out(self.ports, families, gate).map_err(at(Phase::Network))?;
                Ok(Led::ByPorts(errno))
            }
            Err(errno) => Err(at(Phase::Rules)(errno)),
        }
    }
}

/// Opens the two sockets of one family, to which the rules lead, and hands both out.
fn hand_out(loopback: IpAddr, gate: RawFd) -> Outcome {
    let place = SocketAddr::new(loopback, PORT);
    let (connections, questions) = (listen_on(place)?, answer_on(place)?);
    sys::hand_out(gate, HandedOut::Led, &[connections.as_fd(), questions.as_fd()])
}

/// Opens a socket for connections.
fn listen_on(place: SocketAddr) -> Outcome<OwnedFd> {
    let socket = open(place, SocketType::STREAM)?;
    listen(&socket, BACKLOG).map_err(failed)?;
    Ok(socket)
}

/// Opens a socket for questions.
fn answer_on(place: SocketAddr) -> Outcome<OwnedFd> {
    open(place, SocketType::DGRAM)
}

fn open(place: SocketAddr, kind: SocketType) -> Outcome<OwnedFd> {
    let family = if place.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None);
    let socket = socket.map_err(failed)?;
    if place.is_ipv6() {
        // Each family has a socket of its own, and an address of one is never written as one of the other.
        sockopt::set_ipv6_v6only(&socket, true).map_err(failed)?;
    }
    bind(&socket, &place).map_err(failed)?;
    Ok(socket)
}

fn failed(errno: rustix::io::Errno) -> Errno {
    Errno(errno.raw_os_error())
}
