//! The network of a kernel of the sandbox's own, which speaks TCP itself: a cable between two namespaces. At this end are
//! the gateway's sockets and our rules, and nothing else ever; at the far end, whose only device it is, the runtime
//! takes packets off as they are. Who is at the far end cannot be at this one: nothing leads from there but packets.
//!
//! Neither end asks whose an address is: both know each other from the beginning.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use policy::network::HOST_ALIAS;

use crate::netlink::{self, ACKNOWLEDGE, CREATE, REQUEST, attribute, message, nested};
use crate::sys::{self, Errno, Outcome};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_NEIGHBOUR: u16 = 28;
const NEW: u16 = REQUEST | ACKNOWLEDGE | CREATE;

/// The numbers of the devices, which are none that the kernel gives by itself so soon: some kernels put devices of their
/// own into every namespace.
const HERE: u32 = 1000;
const THERE: u32 = 1001;
/// The addresses of the devices, such as nobody else gives out.
const HERE_HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
const THERE_HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 2];
/// What the far end has as its own, and what stands for this end there. Everything is sent to the latter.
const ENDS: [End; 2] = [
    End { own: IpAddr::V4(Ipv4Addr::new(10, 200, 200, 2)), other: IpAddr::V4(HOST_ALIAS), prefix: 30 },
    End {
        own: IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 2)),
        other: IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0x53)),
        prefix: 64,
    },
];

const UP: u32 = libc::IFF_UP as u32;
/// The size of a process id, with which the first message ends.
const PID: usize = 4;
/// Which table, by whom, how far, of which kind.
const LOCAL_TABLE: u8 = 255;
const MAIN_TABLE: u8 = 254;
const AT_START: u8 = 3;
const ANYWHERE: u8 = 0;
const ON_LINK: u8 = 253;
const UNICAST: u8 = 1;
/// That the next one is at the other end of the cable is not to be looked up.
const NEXT_IS_THERE: u32 = 4;
/// A neighbour that is known for good, and an address that nobody else can have.
const PERMANENT: u16 = 0x80;
const NO_DUPLICATE: u8 = 0x02;

struct End {
    own: IpAddr,
    other: IpAddr,
    prefix: u8,
}

/// What the kernel is told, in its own words; written before clone. Where it has no IPv6, neither has the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cable<Bytes> {
    /// Both devices; the process whose namespace gets the far one is the last that it says.
    pub(crate) pair: Bytes,
    /// The way from here to there, of each family.
    pub(crate) here: [Bytes; 2],
    /// And from there to here.
    pub(crate) there: [Bytes; 2],
}

impl Cable<Vec<u8>> {
    pub(crate) fn new() -> Self {
        Self { pair: pair(), here: ENDS.each_ref().map(End::here), there: ENDS.each_ref().map(End::there) }
    }

    /// As the builder reads it.
    pub(crate) fn laid(&self) -> Cable<&[u8]> {
        let here = self.here.each_ref().map(Vec::as_slice);
        Cable { pair: &self.pair, here, there: self.there.each_ref().map(Vec::as_slice) }
    }
}

impl<'bytes> Cable<&'bytes [u8]> {
    /// Leaves the namespace in which everything else has been laid for one that has nothing but the far end. After clone,
    /// with authority over both.
    pub(crate) fn lay(&self, families: usize) -> Outcome {
        // It stays in the namespace that it was opened in.
        let here = netlink::open(None)?;
        sys::unshare(libc::CLONE_NEWNET)?;
        sys::raise_loopback()?;
        let there = netlink::open(None)?;
        let (beginning, _) = self.pair.split_at_checked(self.pair.len() - PID).ok_or(Errno(libc::EBADMSG))?;
        let pid = (rustix::process::getpid().as_raw_nonzero().get() as u32).to_ne_bytes();
        netlink::tell_on(&here, [beginning, &pid])?;
        let ask = |socket: &OwnedFd, messages: &[&'bytes [u8]; 2]| {
            messages.iter().take(families).try_for_each(|message| netlink::tell_on(socket, [message, &[]]))
        };
        ask(&here, &self.here)?;
        ask(&there, &self.there)
    }
}

fn pair() -> Vec<u8> {
    let process = attribute(19, &[0; PID]);
    // It cannot be up before the other is there.
    let far = [device(THERE, 0), attribute(3, b"eth0\0"), attribute(1, &THERE_HARDWARE), process].concat();
    let kind = [attribute(1, b"veth\0"), nested(2, &[nested(1, &[far])])];
    let near = [attribute(3, b"gate\0"), attribute(1, &HERE_HARDWARE), nested(18, &kind)];
    message(NEW_LINK, NEW, &device(HERE, UP), &near)
}

fn device(index: u32, flags: u32) -> Vec<u8> {
    [0, index, flags, flags].map(u32::to_ne_bytes).concat()
}

impl End {
    /// From this end: the far one has one address, and where it is is known. All others are here.
    fn here(&self) -> Vec<u8> {
        let bits = if self.own.is_ipv4() { 32 } else { 128 };
        let to = [attribute(1, &octets(self.own)), attribute(4, &HERE.to_ne_bytes())];
        let way = route(self.own, bits, [LOCAL_TABLE, AT_START, ON_LINK, UNICAST], 0);
        // A refusal of IPv6 is sent from an address of the device that it leaves by, or not at all.
        let address = match self.other {
            IpAddr::V4(_) => Vec::new(),
            IpAddr::V6(_) => address(self.other, bits, HERE),
        };
        [address, message(NEW_ROUTE, NEW, &way, &to), neighbour(self.own, HERE, THERE_HARDWARE)].concat()
    }

    /// From the far one: everything is behind this end.
    fn there(&self) -> Vec<u8> {
        let by = [attribute(5, &octets(self.other)), attribute(4, &THERE.to_ne_bytes())];
        let way = route(self.own, 0, [MAIN_TABLE, AT_START, ANYWHERE, UNICAST], NEXT_IS_THERE);
        [
            message(NEW_LINK, REQUEST | ACKNOWLEDGE, &device(THERE, UP), &[]),
            address(self.own, self.prefix, THERE),
            message(NEW_ROUTE, NEW, &way, &by),
            neighbour(self.other, THERE, HERE_HARDWARE),
        ]
        .concat()
    }
}

fn route(address: IpAddr, bits: u8, [table, by, scope, kind]: [u8; 4], flags: u32) -> Vec<u8> {
    [&[family(address), bits, 0, 0, table, by, scope, kind][..], &flags.to_ne_bytes()].concat()
}

fn address(address: IpAddr, prefix: u8, device: u32) -> Vec<u8> {
    let beginning = [&[family(address), prefix, NO_DUPLICATE, ANYWHERE][..], &device.to_ne_bytes()].concat();
    let octets = octets(address);
    message(NEW_ADDRESS, NEW, &beginning, &[attribute(2, &octets), attribute(1, &octets)])
}

fn neighbour(address: IpAddr, device: u32, hardware: [u8; 6]) -> Vec<u8> {
    let beginning =
        [&[family(address), 0, 0, 0][..], &device.to_ne_bytes(), &PERMANENT.to_ne_bytes(), &[0, UNICAST]];
    message(
        NEW_NEIGHBOUR,
        NEW,
        &beginning.concat(),
        &[attribute(1, &octets(address)), attribute(2, &hardware)],
    )
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_the_last_that_is_said() {
        let message = pair();
        assert_eq!(message.len() % 4, 0);
        assert_eq!(message[..4], (message.len() as u32).to_ne_bytes());
        let attribute = &message[message.len() - 8..];
        assert_eq!(attribute[..4], [8u16.to_ne_bytes(), 19u16.to_ne_bytes()].concat());
    }
}
