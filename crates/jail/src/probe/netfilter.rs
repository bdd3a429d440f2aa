//! A redirecting nftables rule, spoken to the kernel over netlink in a network namespace of its own: the gateway
//! will send all connections to itself by such a rule.

use rustix::io::Errno as SocketErrno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::trial::{Refusal, Trial};
use crate::sys::{Errno, Outcome};

const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE: u16 = 0x400;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// The nftables subsystem is number ten, the high byte of a message's type.
const NFTABLES: u16 = 10;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const FAMILY_INET: u8 = 1;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;
const ERROR: u16 = 2;

pub(super) fn redirect() -> Result<(), Refusal> {
    let batch = batch();
    let add = || add_rules(&batch);
    Trial::namespaces(libc::CLONE_NEWNET).run(&[("add a redirecting nftables rule", &add)])
}

/// After clone: sends the batch and reads what the kernel, which answers before `send` returns, says to it.
fn add_rules(batch: &[u8]) -> Outcome {
    let failed = |errno: SocketErrno| Errno(errno.raw_os_error());
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::NETFILTER)).map_err(failed)?;
    send(&socket, batch, SendFlags::empty()).map_err(failed)?;
    let mut answers = 0;
    while answers < 3 {
        let mut answer = [0u8; 4096];
        let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT).map_err(failed)?;
        let mut rest = &answer[..length];
        while let Some((errno, after)) = next_answer(rest) {
            if errno != 0 {
                return Err(Errno(errno));
            }
            answers += 1;
            rest = after;
        }
    }
    Ok(())
}

/// The error number of the first message, zero for success, and the messages after it.
fn next_answer(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = (word(0)? as usize).max(HEADER);
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let errno = if kind == ERROR { (word(HEADER)? as i32).wrapping_neg() } else { 0 };
    Some((errno, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// A table, a chain for outgoing connections and a rule that redirects them, all or nothing.
fn batch() -> Vec<u8> {
    let table = |kind| attribute(kind, b"agentbox\0");
    let hook = [attribute(1, &3u32.to_be_bytes()), attribute(2, &(-100i32).to_be_bytes())].concat();
    let chain =
        [table(1), attribute(3, b"output\0"), attribute(4 | NESTED, &hook), attribute(7, b"nat\0")].concat();
    let expression = [attribute(1, b"redir\0"), attribute(2 | NESTED, &[])].concat();
    let expressions = attribute(4 | NESTED, &attribute(1 | NESTED, &expression));
    let rule = [table(1), attribute(2, b"output\0"), expressions].concat();
    [
        message(BATCH_BEGIN, REQUEST, 0, NFTABLES, &[]),
        message(NEW_TABLE, REQUEST | ACKNOWLEDGE | CREATE, FAMILY_INET, 0, &table(1)),
        message(NEW_CHAIN, REQUEST | ACKNOWLEDGE | CREATE, FAMILY_INET, 0, &chain),
        message(NEW_RULE, REQUEST | ACKNOWLEDGE | CREATE, FAMILY_INET, 0, &rule),
        message(BATCH_END, REQUEST, 0, NFTABLES, &[]),
    ]
    .concat()
}

fn message(kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) -> Vec<u8> {
    const FAMILY_HEADER: usize = 4;
    let length = (HEADER + FAMILY_HEADER + attributes.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Neither a sequence number nor a port: one batch is all that this socket ever sends.
    bytes.extend([0; 8]);
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(attributes);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    const ATTRIBUTE_HEADER: usize = 4;
    let mut bytes = ((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_attributes_are_aligned_and_tell_their_length() {
        assert_eq!(attribute(1, b"redir\0").len(), 12);
        assert_eq!(attribute(1, b"redir\0")[..2], 10u16.to_ne_bytes());
        let batch = batch();
        let (mut at, mut count) = (0, 0);
        while at < batch.len() {
            at += u32::from_ne_bytes(batch[at..at + 4].try_into().unwrap()) as usize;
            count += 1;
        }
        assert_eq!((at, count), (batch.len(), 5));
    }

    #[test]
    fn answers_are_read_one_after_the_other() {
        let answer = |errno: i32| {
            let mut bytes = [&20u32.to_ne_bytes()[..], &ERROR.to_ne_bytes(), &[0; 10]].concat();
            bytes.extend(errno.wrapping_neg().to_ne_bytes());
            bytes
        };
        let both = [answer(0), answer(libc::EPERM)].concat();
        let (first, rest) = next_answer(&both).unwrap();
        assert_eq!((first, next_answer(rest).map(|(errno, _)| errno)), (0, Some(libc::EPERM)));
        assert!(next_answer(&both[..12]).is_none());
    }
}
