//! What the supervisor hears from its keeper: one byte, and with one of them a descriptor. Only this direction
//! carries descriptors: the keeper, which has the owner's rights, takes none from the exposed side.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// What the keeper answers.
#[derive(Debug)]
pub enum Answer<Descriptor = OwnedFd> {
    /// To [`Plea::Limits`](crate::Plea::Limits) and [`Plea::Empty`](crate::Plea::Empty).
    Limits(Reached),
    /// To [`Plea::Part`](crate::Plea::Part): the record goes on here.
    Part(Descriptor),
    /// To the same: it stays where it is, for now.
    NotNow,
    /// To the same: it has had all the parts that it may have.
    Full,
    /// Unasked: more is on the disk than may be, and all has been frozen.
    DiskFrozen,
    /// Unasked: more is on the disk than may be, and there is no cgroup to be frozen.
    DiskGoesOn,
}

/// Which limits were reached since the last such question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The kernel has killed something for want of memory.
    pub memory: bool,
    /// The kernel has refused a process or thread.
    pub pids: bool,
}

impl<Descriptor: AsFd> Answer<Descriptor> {
    const fn byte(&self) -> u8 {
        match self {
            Self::Limits(Reached { memory: false, pids: false }) => b'0',
            Self::Limits(Reached { memory: true, pids: false }) => b'1',
            Self::Limits(Reached { memory: false, pids: true }) => b'2',
            Self::Limits(Reached { memory: true, pids: true }) => b'3',
            Self::Part(_) => b'p',
            Self::NotNow => b'n',
            Self::Full => b'f',
            Self::DiskFrozen => b'd',
            Self::DiskGoesOn => b'D',
        }
    }

    /// Sends it.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let descriptor: [BorrowedFd<'_>; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if let Self::Part(part) = self {
            descriptor = [part.as_fd()];
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptor));
        }
        // One byte goes whole or not at all.
        sendmsg(socket, &[IoSlice::new(&[self.byte()])], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Answer {
    /// Receives one; none where the keeper is gone or has told us to end.
    pub fn receive(socket: impl AsFd) -> io::Result<Option<Self>> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut descriptor = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut received) = message {
                descriptor = received.next();
            }
        }
        let limits = |memory, pids| Self::Limits(Reached { memory, pids });
        match (byte[0], descriptor) {
            (b'0', None) => Ok(Some(limits(false, false))),
            (b'1', None) => Ok(Some(limits(true, false))),
            (b'2', None) => Ok(Some(limits(false, true))),
            (b'3', None) => Ok(Some(limits(true, true))),
            (b'p', Some(part)) => Ok(Some(Self::Part(part))),
            (b'n', None) => Ok(Some(Self::NotNow)),
            (b'f', None) => Ok(Some(Self::Full)),
            (b'd', None) => Ok(Some(Self::DiskFrozen)),
            (b'D', None) => Ok(Some(Self::DiskGoesOn)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn answers_survive_their_bytes_and_nothing_else_is_one() {
        let (left, right) = UnixStream::pair().unwrap();
        for (memory, pids) in [(false, false), (true, false), (false, true), (true, true)] {
            Answer::<OwnedFd>::Limits(Reached { memory, pids }).send(&left).unwrap();
            let Ok(Some(Answer::Limits(reached))) = Answer::receive(&right) else { panic!("no limits") };
            assert_eq!((reached.memory, reached.pids), (memory, pids));
        }
        Answer::<OwnedFd>::NotNow.send(&left).unwrap();
        assert!(matches!(Answer::receive(&right), Ok(Some(Answer::NotNow))));
        Answer::<OwnedFd>::Full.send(&left).unwrap();
        assert!(matches!(Answer::receive(&right), Ok(Some(Answer::Full))));
        Answer::<OwnedFd>::DiskFrozen.send(&left).unwrap();
        assert!(matches!(Answer::receive(&right), Ok(Some(Answer::DiskFrozen))));
        Answer::<OwnedFd>::DiskGoesOn.send(&left).unwrap();
        assert!(matches!(Answer::receive(&right), Ok(Some(Answer::DiskGoesOn))));
        // A part without its descriptor is none.
        (&left).write_all(b"p?").unwrap();
        assert!(Answer::receive(&right).is_err() && Answer::receive(&right).is_err());
        drop(left);
        assert!(matches!(Answer::receive(&right), Ok(None)));
    }

    #[test]
    fn a_part_brings_its_descriptor() {
        let (left, right) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        Answer::Part(file.as_fd()).send(&left).unwrap();
        let Ok(Some(Answer::Part(part))) = Answer::receive(&right) else { panic!("no part") };
        std::fs::File::from(part).write_all(b"canary").unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "canary");
    }
}
