//! The nftables rules of a sandbox's namespace: one table with two chains, all or nothing. What is sent is looked at first:
//! what stays on the loopback, every connection and every question for a name may go on, and all else is refused where it
//! is sent, so that programs need not wait for an answer. Then it arrives, as nothing leaves the loopback device: what is
//! for the loopback is left alone, so that servers inside are reached as anywhere, and the rest is given to the gateway's
//! sockets as it is. No address is translated and no connection tracked: whose a packet is, its socket tells.
//!
//! Where a cable leads to the sandbox nothing is sent from here, and one chain is enough.

use std::net::{IpAddr, Ipv6Addr};

use super::{MARK, PLACES, PORT};
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
/// What is sent from here, and what arrives here. The latter comes after fragments were put together, and before anybody
/// has looked for the socket that a packet is for.
const SENT: Chain = Chain { name: b"out\0", hook: 3, priority: 0 };
const ARRIVED: Chain = Chain { name: b"in\0", hook: 0, priority: -150 };

const VERDICT_REGISTER: u32 = 0;
const REGISTER: u32 = 1;
const OTHER_REGISTER: u32 = 2;
const ACCEPT: u32 = 1;
/// What is compared with: the mark of the packet, its family, the protocol that it carries.
const META_MARK: u32 = 3;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const TCP: u8 = 6;
const UDP: u8 = 17;
const V4: u8 = 2;
const V6: u8 = 10;
/// Where a part of the packet begins: at its header of the network, or at that of the transport.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// Whether a part of the packet is what it is compared with, or is not.
const EQUAL: u32 = 0;
const OTHER: u32 = 1;
/// The flags of TCP by which the first packet of a connection is known: that it begins, and answers nobody.
const FLAGS: u32 = 13;
const BEGINS: u8 = 0x02;
const ANSWERS: u8 = 0x10;
/// A refusal in the family of the packet: prohibited by the administration, or that nobody is at that port.
const REFUSE_ICMP: u32 = 2;
const PROHIBITED: u8 = 3;
const NOBODY_THERE: u8 = 1;

struct Chain {
    name: &'static [u8],
    hook: u32,
    priority: i32,
}

/// Where those are whom the rules lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the namespace of the rules itself.
    Here,
    /// At the other end of a cable.
    BehindCable,
}

/// All of it.
pub(crate) fn batch(place: Place) -> Vec<u8> {
    let chains = match place {
        Place::Here => here(),
        Place::BehindCable => behind_cable(),
    };
    [
        message(BATCH_BEGIN, REQUEST, &beginning(0, NFTABLES), &[]),
        new(NEW_TABLE, &[attribute(1, TABLE)]),
        chains,
        message(BATCH_END, REQUEST, &beginning(0, NFTABLES), &[]),
    ]
    .concat()
}

/// What comes by a cable is never for those who are here: every connection and every question is the gateway's, and all
/// else is refused. Nobody is here who could send anything but the kernel and the gateway.
fn behind_cable() -> Vec<u8> {
    // Of all refusals this is the one that another kernel is sure to tell whoever has sent the datagram.
    let refused = refuse_as(NOBODY_THERE);
    let no_question = vec![part(TRANSPORT, 2, 2), compare(OTHER, &PORT.to_be_bytes()), refused];
    [
        ARRIVED.create(),
        ARRIVED.rule(&[of(UDP), no_question]),
        PLACES.iter().flat_map(|place| ARRIVED.rule(&[lead(*place)])).collect(),
        ARRIVED.add(ACKNOWLEDGE, &[vec![refuse()]]),
    ]
    .concat()
}

fn here() -> Vec<u8> {
    let questions = vec![part(TRANSPORT, 2, 2), equals(&PORT.to_be_bytes()), accept()];
    [
        SENT.create(),
        SENT.rule(&[of(TCP), vec![accept()]]),
        SENT.own(),
        SENT.rule(&[of(UDP), questions]),
        SENT.rule(&[vec![refuse()]]),
        ARRIVED.create(),
        ARRIVED.own(),
        PLACES.iter().flat_map(|place| ARRIVED.rule(&[lead(*place)])).collect(),
        // What has a socket that is not the gateway's belongs to a connection among those inside.
        ARRIVED.rule(&[of(TCP), begins_nothing(), vec![accept()]]),
        // All are added or none, and whichever the kernel cannot add it says so: one answer is enough.
        ARRIVED.add(ACKNOWLEDGE, &[vec![refuse()]]),
    ]
    .concat()
}

impl Chain {
    fn create(&self) -> Vec<u8> {
        let hook = [attribute(1, &self.hook.to_be_bytes()), attribute(2, &self.priority.to_be_bytes())];
        let (table, name) = (attribute(1, TABLE), attribute(3, self.name));
        new(NEW_CHAIN, &[table, name, nested(4, &hook), attribute(7, b"filter\0")])
    }

    fn rule(&self, expressions: &[Vec<Vec<u8>>]) -> Vec<u8> {
        self.add(0, expressions)
    }

    fn add(&self, flags: u16, expressions: &[Vec<Vec<u8>>]) -> Vec<u8> {
        // At the end of the chain, after those before it.
        const APPEND: u16 = 0x800;
        let attributes = [attribute(1, TABLE), attribute(2, self.name), nested(4, &expressions.concat())];
        message(NEW_RULE, REQUEST | CREATE | APPEND | flags, &beginning(INET, 0), &attributes)
    }

    /// What is let through as it is: what the gateway sends, to whatever address, and what is for the loopback.
    fn own(&self) -> Vec<u8> {
        let loopback = |family, length, offset, address: &[u8]| {
            let to = vec![part(NETWORK, offset, length), equals(address), accept()];
            self.rule(&[in_family(family), to])
        };
        [
            self.rule(&[vec![meta(META_MARK), equals(&MARK.to_ne_bytes()), accept()]]),
            loopback(V4, 1, 16, &[127]),
            loopback(V6, 16, 24, &Ipv6Addr::LOCALHOST.octets()),
        ]
        .concat()
    }
}

/// What every message to nftables begins with.
fn beginning(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn new(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind, REQUEST | CREATE, &beginning(INET, 0), attributes)
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
    compare(EQUAL, value)
}

fn compare(how: u32, value: &[u8]) -> Vec<u8> {
    expression(b"cmp\0", &[number(1, REGISTER), number(2, how), nested(3, &[attribute(1, value)])])
}

fn of(protocol: u8) -> Vec<Vec<u8>> {
    vec![meta(META_PROTOCOL), equals(&[protocol])]
}

fn in_family(family: u8) -> Vec<Vec<u8>> {
    vec![meta(META_FAMILY), equals(&[family])]
}

/// Goes on only where a packet of TCP is not the first of its connection.
fn begins_nothing() -> Vec<Vec<u8>> {
    let (mask, none) = (nested(4, &[attribute(1, &[BEGINS | ANSWERS])]), nested(5, &[attribute(1, &[0])]));
    let keep = [number(1, REGISTER), number(2, REGISTER), number(3, 1), mask, none];
    vec![part(TRANSPORT, FLAGS, 1), expression(b"bitwise\0", &keep), compare(OTHER, &[BEGINS])]
}

fn accept() -> Vec<u8> {
    let verdict = nested(2, &[number(1, ACCEPT)]);
    expression(b"immediate\0", &[number(1, VERDICT_REGISTER), nested(2, &[verdict])])
}

/// Gives a packet to the connection of the gateway's that it belongs to, or to the gateway's socket in this place; goes on
/// where neither is there. What is neither TCP nor UDP goes on as well.
fn lead(place: IpAddr) -> Vec<Vec<u8>> {
    let load = |register, value: &[u8]| {
        expression(b"immediate\0", &[number(1, register), nested(2, &[attribute(1, value)])])
    };
    let (family, address) = match place {
        IpAddr::V4(address) => (V4, load(REGISTER, &address.octets())),
        IpAddr::V6(address) => (V6, load(REGISTER, &address.octets())),
    };
    let there = [number(1, family.into()), number(2, REGISTER), number(3, OTHER_REGISTER)];
    let lead = vec![address, load(OTHER_REGISTER, &PORT.to_be_bytes()), expression(b"tproxy\0", &there)];
    [in_family(family), lead, vec![accept()]].concat()
}

fn refuse() -> Vec<u8> {
    refuse_as(PROHIBITED)
}

fn refuse_as(what: u8) -> Vec<u8> {
    expression(b"reject\0", &[number(1, REFUSE_ICMP), attribute(2, &[what])])
}
