//! Which sockets may be made: arguments are family, type and protocol.
//!
//! Where a program has a plan for "this kernel has no such thing", it gets the error that starts the plan.

use super::rule::{ALLOW, KILL, Rule, Word, by, by_bits, refuse};

const FAMILY: Word = Word::Low(0);
const KIND: Word = Word::Low(1);
const PROTOCOL: Word = Word::Low(2);

/// The type without the flags that the kernel takes along with it.
const KIND_BITS: u32 = !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC).cast_unsigned();

const UNIX: u32 = libc::AF_UNIX.cast_unsigned();
const INET: u32 = libc::AF_INET.cast_unsigned();
const INET6: u32 = libc::AF_INET6.cast_unsigned();
const NETLINK: u32 = libc::AF_NETLINK.cast_unsigned();
const PACKET: u32 = libc::AF_PACKET.cast_unsigned();
const STREAM: u32 = libc::SOCK_STREAM.cast_unsigned();
const DATAGRAM: u32 = libc::SOCK_DGRAM.cast_unsigned();
const ROUTE: u32 = libc::NETLINK_ROUTE.cast_unsigned();
const ANY: u32 = 0;
const TCP: u32 = libc::IPPROTO_TCP.cast_unsigned();
const UDP: u32 = libc::IPPROTO_UDP.cast_unsigned();

/// For a sandbox: local sockets of any type, TCP and UDP, and the routing table's netlink, by which runtimes list
/// interfaces.
///
/// Other families answer EAFNOSUPPORT, as on a kernel without them; AF_PACKET is a raw socket and answers EPERM.
/// Other netlink protocols answer EPROTONOSUPPORT, at which PAM and sudo go on without the audit log.
pub(super) fn in_a_sandbox() -> Rule {
    by(FAMILY)
        .when([UNIX], ALLOW)
        .when([INET, INET6], internet())
        .when([NETLINK], by(PROTOCOL).when([ROUTE], ALLOW).otherwise(refuse(libc::EPROTONOSUPPORT)))
        .when([PACKET], refuse(libc::EPERM))
        .otherwise(refuse(libc::EAFNOSUPPORT))
}

/// For a kernel of the sandbox's own that speaks TCP itself. It tells who sends ICMP echoes of no refusal, so that they would
/// wait for an answer for ever; so there are no such sockets, as there are none in other sandboxes. Every other socket is that kernel's to decide.
pub(super) fn on_its_own_kernel() -> Rule {
    let kinds = by_bits(KIND, KIND_BITS).when([DATAGRAM], only(UDP)).otherwise(ALLOW);
    by(FAMILY).when([INET, INET6], kinds).otherwise(ALLOW)
}

/// For the supervisor: TCP and UDP. A local socket could reach D-Bus or a container engine, so asking for one is an
/// attack.
pub(super) fn in_the_supervisor() -> Rule {
    by(FAMILY).when([INET, INET6], internet()).when([UNIX], KILL).else_refuse()
}

/// For the supervisor's signal pipe: a pair of connected streams, which can be joined to nothing else. From a pair
/// of datagram sockets one could send to any path.
pub(super) fn pair_in_the_supervisor() -> Rule {
    let streams = by_bits(KIND, KIND_BITS).when([STREAM], ALLOW).otherwise(KILL);
    by(FAMILY).when([UNIX], streams).else_refuse()
}

/// TCP and UDP. Another protocol (Multipath TCP, SCTP, ICMP echo) answers EPROTONOSUPPORT, at which Go and others
/// take plain TCP. Another type is raw or close to it: EPERM.
fn internet() -> Rule {
    by_bits(KIND, KIND_BITS).when([STREAM], only(TCP)).when([DATAGRAM], only(UDP)).else_refuse()
}

fn only(protocol: u32) -> Rule {
    by(PROTOCOL).when([ANY, protocol], ALLOW).otherwise(refuse(libc::EPROTONOSUPPORT))
}
