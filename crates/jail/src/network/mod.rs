//! The network of a sandbox that has a way out. It has no device but its loopback: every address is made to be here, and
//! rules of the sandbox's own namespace send every connection and every question for a name to sockets that are opened
//! here and handed out. Whoever holds them decides; without them nothing leads anywhere.

mod report;
mod routes;
mod rules;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, RawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, netlink, socket_with};

use crate::netlink::tell;
use crate::sys::{self, Errno, Outcome};

pub(crate) use report::{LEAVE_OUT_FULL, LEAVE_OUT_PRIVATE, LEAVE_OUT_UPSTREAM, report};
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
}

impl Wiring<Vec<u8>> {
    pub(crate) fn new() -> Self {
        Self { routes: routes::v4(), routes_v6: routes::v6(), rules: rules() }
    }

    /// As the builder reads it.
    pub(crate) fn laid(&self) -> Wiring<&[u8]> {
        Wiring { routes: &self.routes, routes_v6: &self.routes_v6, rules: &self.rules }
    }
}

impl Wiring<&[u8]> {
    /// Lays the wires and hands the sockets out at `gate`. After clone, with authority over the network namespace.
    pub(crate) fn lay(&self, gate: RawFd) -> Outcome {
        tell(None, self.routes)?;
        // A machine without IPv6 has no way out by it either.
        let has_v6 = tell(None, self.routes_v6).is_ok();
        tell(Some(netlink::NETFILTER), self.rules)?;
        hand_out(Ipv4Addr::LOCALHOST.into(), gate)?;
        if has_v6 { hand_out(Ipv6Addr::LOCALHOST.into(), gate) } else { Ok(()) }
    }
}

/// Opens the socket for connections and the one for questions, and hands both out.
fn hand_out(address: IpAddr, gate: RawFd) -> Outcome {
    let failed = |errno: rustix::io::Errno| Errno(errno.raw_os_error());
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let open = |kind| {
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        bind(&socket, &SocketAddr::new(address, PORT))?;
        Ok(socket)
    };
    let connections = open(SocketType::STREAM).map_err(failed)?;
    listen(&connections, BACKLOG).map_err(failed)?;
    let questions = open(SocketType::DGRAM).map_err(failed)?;
    sys::hand_out(gate, &[connections.as_fd(), questions.as_fd()])
}
