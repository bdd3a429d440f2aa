//! Messages to the kernel over netlink: written before clone, sent after it, and their answers read. Nothing that is
//! sent here comes from a person or from inside.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, recv,
    sendmsg, socket_with,
};

use crate::sys::{Errno, Outcome};

pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACKNOWLEDGE: u16 = 0x4;
pub(crate) const CREATE: u16 = 0x400;
/// All that there are.
pub(crate) const ALL: u16 = 0x300;

const NESTED: u16 = 0x8000;
const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// The kernel says no more at a time than there was room for before, and begins with less.
const ROOM: usize = 16 * 1024;

/// One message: after its header what every message of its kind begins with, then attributes.
pub(crate) fn message(kind: u16, flags: u16, beginning: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes = attributes.concat();
    let length = (HEADER + beginning.len() + attributes.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Neither a sequence number nor a port: what is sent at once is all that its socket ever sends.
    bytes.extend([0; 8]);
    bytes.extend(beginning);
    bytes.extend(attributes);
    bytes
}

pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute that holds others.
pub(crate) fn nested(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &attributes.concat())
}

/// After clone: sends messages and reads what the kernel says to those that ask for an answer.
pub(crate) fn tell(protocol: Option<Protocol>, messages: &[u8]) -> Outcome {
    tell_on(&open(protocol)?, [messages, &[]])
}

/// After clone: a socket to the kernel of the namespace that one stands in now.
pub(crate) fn open(protocol: Option<Protocol>) -> Outcome<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    socket_with(family, kind, SocketFlags::CLOEXEC, protocol).map_err(failed)
}

/// After clone: sends messages, whose bytes come in two parts, and reads what the kernel, which answers before the call
/// returns, says to those that ask for an answer.
pub(crate) fn tell_on(socket: &OwnedFd, parts: [&[u8]; 2]) -> Outcome {
    let slices = parts.map(IoSlice::new);
    sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), SendFlags::empty()).map_err(failed)?;
    // No message begins in the second part.
    let mut awaited = Messages(parts[0]).filter(|message| message.flags & ACKNOWLEDGE != 0).count();
    while awaited > 0 {
        let mut answers = [0u8; 8192];
        let (length, _) = recv(socket, &mut answers, RecvFlags::DONTWAIT).map_err(failed)?;
        for answer in Messages(&answers[..length]) {
            if answer.errno != 0 {
                return Err(Errno(answer.errno));
            }
            awaited = awaited.saturating_sub(1);
        }
    }
    Ok(())
}

/// Asks for [`ALL`] of something, and gives what each message says of one. Not for after clone.
pub(crate) fn list(protocol: Protocol, question: &[u8], mut each: impl FnMut(&[u8])) -> Outcome {
    let socket = open(Some(protocol))?;
    let slices = [IoSlice::new(question)];
    sendmsg(&socket, &slices, &mut SendAncillaryBuffer::default(), SendFlags::empty()).map_err(failed)?;
    let mut room = [0; ROOM];
    loop {
        let (length, whole) = recv(&socket, &mut room, RecvFlags::TRUNC).map_err(failed)?;
        if whole > ROOM {
            return Err(Errno(libc::EMSGSIZE));
        }
        for message in Messages(&room[..length.min(ROOM)]) {
            match (message.kind, message.errno) {
                // That is all, unless it could not go on.
                (DONE, 0) => return Ok(()),
                (DONE | ERROR, errno) => return Err(Errno(errno)),
                _ => each(message.body),
            }
        }
    }
}

/// The value of one attribute among others, where it is there.
pub(crate) fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let half = |at: usize| Some(u16::from_ne_bytes(attributes.get(at..at + 2)?.try_into().ok()?));
        let (length, found) = (usize::from(half(0)?), half(2)?);
        let value = attributes.get(ATTRIBUTE_HEADER..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn failed(errno: rustix::io::Errno) -> Errno {
    Errno(errno.raw_os_error())
}

/// Messages one after the other.
struct Messages<'bytes>(&'bytes [u8]);

struct Message<'bytes> {
    kind: u16,
    flags: u16,
    /// What comes after its header.
    body: &'bytes [u8],
    /// Where it is an answer, or says that this is all, the error number; zero for success.
    errno: i32,
}

impl<'bytes> Iterator for Messages<'bytes> {
    type Item = Message<'bytes>;

    fn next(&mut self) -> Option<Message<'bytes>> {
        let bytes = self.0;
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (length, kind, flags) = ((word(0)? as usize).max(HEADER), half(4)?, half(6)?);
        let is_answer = kind == ERROR || kind == DONE;
        let errno = if is_answer { (word(HEADER)? as i32).wrapping_neg() } else { 0 };
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        let body = bytes.get(HEADER..length).unwrap_or_default();
        Some(Message { kind, flags, body, errno })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_attributes_are_aligned_and_tell_their_length() {
        assert_eq!(attribute(1, b"redir\0").len(), 12);
        assert_eq!(attribute(1, b"redir\0")[..2], 10u16.to_ne_bytes());
        let both = [message(7, REQUEST, &[0; 4], &[attribute(1, b"x")]), message(8, ACKNOWLEDGE, &[], &[])];
        let flags: Vec<u16> = Messages(&both.concat()).map(|message| message.flags).collect();
        assert_eq!(flags, [REQUEST, ACKNOWLEDGE]);
    }

    #[test]
    fn answers_are_read_one_after_the_other() {
        let answer = |errno: i32| message(ERROR, 0, &errno.wrapping_neg().to_ne_bytes(), &[]);
        let both = [answer(0), answer(libc::EPERM)].concat();
        let errnos: Vec<i32> = Messages(&both).map(|message| message.errno).collect();
        assert_eq!(errnos, [0, libc::EPERM]);
        // What could not be told to the end says so in its last message.
        let cut_off = message(DONE, 0, &libc::ENOMEM.wrapping_neg().to_ne_bytes(), &[]);
        assert_eq!(Messages(&cut_off).map(|message| message.errno).collect::<Vec<_>>(), [libc::ENOMEM]);
        assert_eq!(Messages(&both[..12]).count(), 0);
    }

    #[test]
    fn an_attribute_is_found_among_others() {
        let all = [attribute(7, b"seven"), attribute(0, b""), attribute(9, b"nine")].concat();
        assert_eq!(find(&all, 9), Some(&b"nine"[..]));
        assert_eq!(find(&all, 0), Some(&b""[..]));
        assert_eq!(find(&all, 8), None);
        // What is cut off, or says that it is shorter than it can be.
        assert_eq!(find(&all[..all.len() - 1], 9), None);
        assert_eq!(find(&[0; 8], 9), None);
    }
}
