//! A port for a running supervisor: four bytes and one descriptor over a connection of its own, and one byte back. The
//! owner binds and listens; the supervisor may not.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The socket on which a supervisor takes ports, in its sandbox's runtime directory.
pub const PORTS_SOCKET: &str = "ports.sock";

/// What a message begins with: what it is, and its version.
const BEGINNING: [u8; 2] = [b'P', 1];

/// Room for one descriptor more than there may be, to see that there were too many.
const SEEN: usize = 2;

/// A socket that listens on the host, and the port inside that it leads to.
#[derive(Debug)]
pub struct OfferedPort {
    /// The socket; whoever receives it checks that it is one.
    pub listener: OwnedFd,
    /// The port inside.
    pub inside: NonZeroU16,
}

/// One byte back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PortAnswer {
    /// It is published.
    Published = b'p',
    /// What came was no listening TCP socket, or not one alone.
    Unusable = b'u',
    /// That address is published already.
    Taken = b't',
    /// As many are published as may be.
    Full = b'f',
    /// It could not be put on record.
    Unrecorded = b'r',
}

impl PortAnswer {
    /// Reads a byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'p' => Some(Self::Published),
            b'u' => Some(Self::Unusable),
            b't' => Some(Self::Taken),
            b'f' => Some(Self::Full),
            b'r' => Some(Self::Unrecorded),
            _ => None,
        }
    }
}

/// Sends one. The four bytes go into an empty socket whole.
pub fn offer_port(socket: impl AsFd, listener: impl AsFd, inside: NonZeroU16) -> io::Result<()> {
    let [low, high] = inside.get().to_le_bytes();
    let message = [BEGINNING[0], BEGINNING[1], low, high];
    let descriptors = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one without waiting. None where what came is no such message; its descriptors are closed.
pub fn receive_port(socket: impl AsFd) -> io::Result<Option<OfferedPort>> {
    let mut message = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SEEN))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut message)], &mut ancillary, flags)?;
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let [first, second, low, high] = message;
    let inside = NonZeroU16::new(u16::from_le_bytes([low, high]));
    let whole = received.bytes == message.len() && [first, second] == BEGINNING;
    Ok(match (<[OwnedFd; 1]>::try_from(descriptors), inside) {
        (Ok([listener]), Some(inside)) if whole => Some(OfferedPort { listener, inside }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// How many descriptors of this process are of a file; tests beside this one have others.
    fn copies_of(file: &File) -> usize {
        use std::os::unix::fs::MetadataExt as _;
        let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let wanted = number(file.metadata().unwrap());
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|entry| std::fs::metadata(entry.path()).is_ok_and(|found| number(found) == wanted)).count()
    }

    #[test]
    fn a_port_arrives_and_nothing_else_does() {
        let file = tempfile::tempfile().unwrap();
        let port = NonZeroU16::new(8080).unwrap();
        let (left, right) = UnixStream::pair().unwrap();
        let nothing = receive_port(&right).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        offer_port(&left, &file, port).unwrap();
        assert_eq!(receive_port(&right).unwrap().unwrap().inside, port);

        // Other bytes, fewer bytes, no port, no descriptor, the end.
        for bytes in [&b"Q\x01\x01\x01"[..], b"P\x02\x01\x01", b"P\x01\x01", b"P\x01\0\0", b"P\x01\x01\x01"] {
            (&left).write_all(bytes).unwrap();
            assert!(receive_port(&right).unwrap().is_none(), "{bytes:?}");
        }
        drop(left);
        assert!(receive_port(&right).unwrap().is_none());
    }

    #[test]
    fn more_than_one_descriptor_is_none() {
        let file = tempfile::tempfile().unwrap();
        let (left, right) = UnixStream::pair().unwrap();
        for count in [2, 3, 20] {
            let many = vec![file.as_fd(); count];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(20))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&many)));
            let message = [IoSlice::new(b"P\x01\x01\x01")];
            sendmsg(&left, &message, &mut ancillary, SendFlags::NOSIGNAL).unwrap();
            assert!(receive_port(&right).unwrap().is_none(), "{count}");
        }
        assert_eq!(copies_of(&file), 1);
    }

    #[test]
    fn answers_survive_their_byte() {
        for byte in 0..=u8::MAX {
            assert!(PortAnswer::from_byte(byte).is_none_or(|answer| answer as u8 == byte));
        }
        assert_eq!(PortAnswer::from_byte(b'p'), Some(PortAnswer::Published));
    }
}
