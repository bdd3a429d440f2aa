//! The nftables rules of a sandbox's namespace: one table with one chain, all or nothing. What stays on the loopback is
//! left alone, so that servers inside are reached as anywhere; every other connection and every question for a name goes
//! to the gateway's sockets; all else is refused at once, so that programs need not wait for an answer.
//!
//! The chain is one of address translation, which sees the first packet of each flow alone: what has been let through
//! costs nothing more here. A packet that is refused begins no flow, so each is refused.

use std::net::Ipv6Addr;

use super::PORT;
use crate::netlink::{ACKNOWLEDGE, CREATE, REQUEST, attribute, message, nested};

/// The nftables subsystem is number ten, the high byte of a message's kind.
const NFTABLES: u16 = 10;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// Both families of addresses.
const INET: u8 = 1;

const TABLE: &[u8] = b"agentbox\0";
const CHAIN: &[u8] = b"out\0";
/// What is sent from here, at the place of those who translate the addresses it is sent to.
const HOOK_OUTPUT: u32 = 3;
const PRIORITY: i32 = -100;

const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const ACCEPT: u32 = 1;
/// What is compared with: the family of the packet, the protocol that it carries.
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const TCP: u8 = 6;
const UDP: u8 = 17;
const V4: u8 = 2;
const V6: u8 = 10;
/// Where a part of the packet begins: at its header of the network, or at that of the transport.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// A refusal in the family of the packet: prohibited by the administration.
const REFUSE_ICMP: u32 = 2;
const PROHIBITED: u8 = 3;
/// The port is given.
const PORT_GIVEN: u32 = 2;

/// All of it.
pub(crate) fn batch() -> Vec<u8> {
    let loopback = |family, length, offset, address: &[u8]| {
        let to = part(NETWORK, offset, length);
        rule(&[meta(META_FAMILY), equals(&[family]), to, equals(address), accept()])
    };
    let questions =
        [meta(META_PROTOCOL), equals(&[UDP]), part(TRANSPORT, 2, 2), equals(&53u16.to_be_bytes())];
    let table = attribute(1, TABLE);
    let hook = [attribute(1, &HOOK_OUTPUT.to_be_bytes()), attribute(2, &PRIORITY.to_be_bytes())];
    let chain = [attribute(1, TABLE), attribute(3, CHAIN), nested(4, &hook), attribute(7, b"nat\0")];
    [
        message(BATCH_BEGIN, REQUEST, &beginning(0, NFTABLES), &[]),
        new(NEW_TABLE, &[table]),
        new(NEW_CHAIN, &chain),
        loopback(V4, 1, 16, &[127]),
        loopback(V6, 16, 24, &Ipv6Addr::LOCALHOST.octets()),
        rule(&[vec![meta(META_PROTOCOL), equals(&[TCP])], redirect()].concat()),
        rule(&[questions.to_vec(), redirect()].concat()),
        rule(&[refuse()]),
        message(BATCH_END, REQUEST, &beginning(0, NFTABLES), &[]),
    ]
    .concat()
}

/// What every message to nftables begins with.
fn beginning(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn new(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind, REQUEST | ACKNOWLEDGE | CREATE, &beginning(INET, 0), attributes)
}

fn rule(expressions: &[Vec<u8>]) -> Vec<u8> {
    // At the end of the chain, after those before it.
    const APPEND: u16 = 0x800;
    let attributes = [attribute(1, TABLE), attribute(2, CHAIN), nested(4, expressions)];
    message(NEW_RULE, REQUEST | ACKNOWLEDGE | CREATE | APPEND, &beginning(INET, 0), &attributes)
}

fn expression(name: &[u8], data: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[attribute(1, name), nested(2, data)])
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

/// Loads something about the packet.
fn meta(key: u32) -> Vec<u8> {
    expression(b"meta\0", &[number(1, REGISTER), number(2, key)])
}

/// Loads a part of the packet.
fn part(base: u32, offset: u32, length: u32) -> Vec<u8> {
    expression(b"payload\0", &[number(1, REGISTER), number(2, base), number(3, offset), number(4, length)])
}

/// Goes on only where what was loaded is this.
fn equals(value: &[u8]) -> Vec<u8> {
    expression(b"cmp\0", &[number(1, REGISTER), number(2, 0), nested(3, &[attribute(1, value)])])
}

fn accept() -> Vec<u8> {
    let verdict = nested(2, &[number(1, ACCEPT)]);
    expression(b"immediate\0", &[number(1, VERDICT_REGISTER), nested(2, &[verdict])])
}

fn redirect() -> Vec<Vec<u8>> {
    let port = attribute(1, &PORT.to_be_bytes());
    let load = expression(b"immediate\0", &[number(1, REGISTER), nested(2, &[port])]);
    vec![load, expression(b"redir\0", &[number(1, REGISTER), number(3, PORT_GIVEN)])]
}

fn refuse() -> Vec<u8> {
    expression(b"reject\0", &[number(1, REFUSE_ICMP), attribute(2, &[PROHIBITED])])
}
