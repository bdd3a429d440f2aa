//! The network of a sandbox that has a way out. It has no device but its loopback: every address is made to be here, and
//! rules of the sandbox's own namespace give every connection and every question for a name to sockets that are opened
//! here and handed out. Whoever holds them decides; without them nothing leads anywhere.
//!
//! Where the kernel has no such rules, there is a socket for each port that the policy names, and nobody on any other.

mod cable;
mod ports;
mod report;
mod routes;
mod rules;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};

use policy::network::HOST_ALIAS;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, netlink, socket_with, sockopt};

use crate::builder::{Failure, Phase};
use crate::netlink::tell;
use crate::sys::{self, Errno, Outcome};

pub(crate) use cable::Cable;
pub use ports::MOST_HANDED_OUT;
pub(crate) use ports::{Fallback, MOST_PORTS};
pub(crate) use report::{
    LEAVE_OUT_FULL, LEAVE_OUT_PRIVATE, LEAVE_OUT_UPSTREAM, LOAD, lack, report, report_ports,
};
pub(crate) use rules::{Place, batch as rules};

/// The port of the sockets. It is the one that questions are sent to, as answers come from the port of their socket; no
/// connection minds which it is. Nobody inside may bind it, so it is in nobody's way there.
const PORT: u16 = 53;

/// The address of the sockets of each family. It is none of the loopback, on which all ports are for those inside. That of
/// IPv6 is from a range of which nothing is ever routed (RFC 6666).
const PLACES: [IpAddr; 2] =
    [IpAddr::V4(HOST_ALIAS), IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0x53))];

/// What every packet of these sockets bears, by which it is known not to come from inside: nobody there may set a mark.
const MARK: u32 = 1;

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
    /// What leads to a kernel of the sandbox's own that speaks for itself, where it does.
    pub(crate) cable: Option<Cable<Bytes>>,
}

/// What the sockets are that a builder hands out, in the byte that comes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HandedOut {
    /// One for connections and one for questions, to which everything of one family is given.
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
    pub(crate) fn new(fallback: &Fallback, place: Place) -> Self {
        Self {
            routes: routes::v4(),
            routes_v6: routes::v6(),
            rules: rules(place),
            ports: fallback.bytes(),
            cable: (place == Place::BehindCable).then(Cable::new),
        }
    }

    /// As the builder reads it.
    pub(crate) fn laid(&self) -> Wiring<&[u8]> {
        Wiring {
            routes: &self.routes,
            routes_v6: &self.routes_v6,
            rules: &self.rules,
            ports: &self.ports,
            cable: self.cable.as_ref().map(Cable::laid),
        }
    }
}

impl Wiring<&[u8]> {
    /// Lays the wires and hands the sockets out at `gate`. After clone, with authority over the network namespace.
    pub(crate) fn lay(&self, gate: RawFd) -> Result<Led, Failure> {
        let at = |phase| move |errno: Errno| Failure { phase, step: 0, errno: errno.0 };
        tell(None, self.routes).map_err(at(Phase::Network))?;
        // A machine without IPv6 has no way out by it either.
        let places = if tell(None, self.routes_v6).is_ok() { &PLACES[..] } else { &PLACES[..1] };
        match tell(Some(netlink::NETFILTER), self.rules) {
            Ok(()) => {
                places.iter().try_for_each(|place| hand_out(*place, gate)).map_err(at(Phase::Network))?;
                // Whoever becomes the runtime is no longer where these sockets are.
                if let Some(cable) = &self.cable {
                    cable.lay(places.len()).map_err(at(Phase::Cable))?;
                }
                Ok(Led::ByRules)
            }
            // They are added all or none, so nothing of them is in the way.
            Err(errno) if are_rules_absent(errno.0) && !self.ports.is_empty() => {
                ports::hand_out(self.ports, places, gate).map_err(at(Phase::Network))?;
                Ok(Led::ByPorts(errno))
            }
            Err(errno) => Err(at(Phase::Rules)(errno)),
        }
    }
}

/// Opens the two sockets of one family, to which the rules lead, and hands both out.
fn hand_out(place: IpAddr, gate: RawFd) -> Outcome {
    let place = SocketAddr::new(place, PORT);
    let (connections, questions) = (listen_on(place, Use::Led)?, answer_on(place, Use::Led)?);
    sys::hand_out(gate, HandedOut::Led, &[connections.as_fd(), questions.as_fd()])
}

/// Whether a socket gets what is for its own place alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It gets what is for anywhere, and answers from there.
    Led,
    Straight,
}

/// Opens a socket for connections.
fn listen_on(place: SocketAddr, usage: Use) -> Outcome<OwnedFd> {
    let socket = open(place, SocketType::STREAM, usage)?;
    listen(&socket, BACKLOG).map_err(failed)?;
    Ok(socket)
}

/// Opens a socket for questions. Where each was sent to is told with it, as its answer comes from there.
fn answer_on(place: SocketAddr, usage: Use) -> Outcome<OwnedFd> {
    let socket = open(place, SocketType::DGRAM, usage)?;
    let (level, destination) = match place {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    };
    sys::set_option(socket.as_fd(), level, destination, 1)?;
    Ok(socket)
}

fn open(place: SocketAddr, kind: SocketType, usage: Use) -> Outcome<OwnedFd> {
    let (family, level, transparent) = match place {
        SocketAddr::V4(_) => (AddressFamily::INET, libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (AddressFamily::INET6, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None);
    let socket = socket.map_err(failed)?;
    if place.is_ipv6() {
        // Each family has a socket of its own, and an address of one is never written as one of the other.
        sockopt::set_ipv6_v6only(&socket, true).map_err(failed)?;
    }
    if usage == Use::Led {
        // Both need authority here, which whoever gets the socket has not; its connections inherit them.
        sys::set_option(socket.as_fd(), level, transparent, 1)?;
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, MARK.cast_signed())?;
        // A connection has the port here that it was meant for; who serves the same port inside is not kept from it.
        sockopt::set_socket_reuseaddr(&socket, kind == SocketType::STREAM).map_err(failed)?;
    }
    bind(&socket, &place).map_err(failed)?;
    Ok(socket)
}

fn failed(errno: rustix::io::Errno) -> Errno {
    Errno(errno.raw_os_error())
}
