//! A message with descriptors over a unix stream socket: four bytes of length, then JSON; the descriptors
//! travel with the length.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message: an environment may be large, but not without end.
const LARGEST: usize = 8 << 20;
/// The most descriptors in one message, which is an order with all ports that may be.
const DESCRIPTORS: usize = 2 + policy::PORTS_LIMIT;

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The other side is gone, or the kernel said no.
    #[error("the other process does not answer")]
    Socket(#[from] io::Error),
    /// Not a message of ours.
    #[error("the other process sent something else than expected")]
    Malformed(#[from] serde_json::Error),
    /// More than any message of ours is long.
    #[error("a message of {0} bytes is too large")]
    TooLarge(usize),
    /// Another number of descriptors than a message comes with.
    #[error("a message came with {0} descriptors, not {1}")]
    Descriptors(usize, usize),
    /// It ended before it said anything.
    #[error("the other process ended without a word")]
    Ended,
}

/// Sends a message and its descriptors.
pub fn send<M: Serialize>(
    socket: &UnixStream,
    message: &M,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), HandoverError> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| HandoverError::TooLarge(body.len()))?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        // What does not fit is not sent at all, and nobody would know.
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        if !fits || descriptors.len() > DESCRIPTORS {
            return Err(HandoverError::Descriptors(descriptors.len(), DESCRIPTORS));
        }
    }
    let flags = SendFlags::NOSIGNAL;
    let sent = sendmsg(socket, &[IoSlice::new(&length)], &mut ancillary, flags).map_err(io::Error::from)?;
    // Four bytes always go into an empty socket buffer whole.
    if sent != length.len() {
        return Err(HandoverError::Socket(io::ErrorKind::WriteZero.into()));
    }
    (&*socket).write_all(&body)?;
    Ok(())
}

/// Receives a message and all descriptors that come with it.
pub fn receive<M: DeserializeOwned>(socket: &UnixStream) -> Result<(M, Vec<OwnedFd>), HandoverError> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut length)], &mut ancillary, flags)
        .map_err(io::Error::from)?;
    if received.bytes != length.len() {
        return Err(HandoverError::Ended);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST {
        return Err(HandoverError::TooLarge(length));
    }
    let mut body = vec![0; length];
    (&*socket).read_exact(&mut body)?;
    Ok((serde_json::from_slice(&body)?, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_message_brings_its_descriptors() {
        let (left, right) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"canary").unwrap();
        file.rewind().unwrap();
        send(&left, &"order", &[file.as_fd()]).unwrap();
        let (message, received) = receive::<String>(&right).unwrap();
        let [received] = received.try_into().unwrap();
        assert_eq!(message, "order");
        assert_eq!(io::read_to_string(std::fs::File::from(received)).unwrap(), "canary");
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        let (left, right) = UnixStream::pair().unwrap();
        (&left).write_all(&[0xff; 8]).unwrap();
        assert!(matches!(receive::<String>(&right), Err(HandoverError::TooLarge(_))));
        let (left, right) = UnixStream::pair().unwrap();
        drop(left);
        assert!(matches!(receive::<String>(&right), Err(HandoverError::Ended)));
    }
}
