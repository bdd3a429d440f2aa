//! Every address is one of this namespace's own. What connects to one does so from the loopback's own address, not from
//! the one it means to reach.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::netlink::{ACKNOWLEDGE, CREATE, REQUEST, attribute, message};

const NEW_ROUTE: u16 = 24;
/// The loopback device is the first of every namespace.
const LOOPBACK: u32 = 1;
/// In which table, by whom, how far, of which kind: the one of local addresses, at start, this host, a local one.
const LOCAL: [u8; 4] = [255, 3, 254, 2];
const OUTPUT_DEVICE: u16 = 4;
const PREFERRED_SOURCE: u16 = 7;

pub(super) fn v4() -> Vec<u8> {
    route(libc::AF_INET, &Ipv4Addr::LOCALHOST.octets())
}

pub(super) fn v6() -> Vec<u8> {
    route(libc::AF_INET6, &Ipv6Addr::LOCALHOST.octets())
}

fn route(family: i32, source: &[u8]) -> Vec<u8> {
    // To anywhere, from anywhere, for any type of service.
    let [table, protocol, scope, kind] = LOCAL;
    let beginning = [family as u8, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
    let attributes = [attribute(OUTPUT_DEVICE, &LOOPBACK.to_ne_bytes()), attribute(PREFERRED_SOURCE, source)];
    message(NEW_ROUTE, REQUEST | ACKNOWLEDGE | CREATE, &beginning, &attributes)
}
