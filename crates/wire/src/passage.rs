//! Descriptors that travel with the bytes of a socket. Only the side that answers takes any: whoever asks of a sandbox
//! must never get one from there.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Most descriptors that have come and whose frames have not. A frame is parsed as soon as it has come, so that an
/// honest peer has two at most: one of a batch whose end comes with the beginning of the next.
const AHEAD: usize = 4;

/// What goes and comes beside the bytes of one connection.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// What the next bytes take with them.
    outgoing: Mutex<Option<OwnedFd>>,
    /// What came, in the order of its frames; nothing where it was lost on the way.
    incoming: Mutex<VecDeque<Option<OwnedFd>>>,
}

/// Under these locks a value takes the place of another and nothing else happens, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Passage {
    /// The next bytes that are sent take this with them.
    pub(crate) fn load(&self, descriptor: OwnedFd) {
        *lock(&self.outgoing) = Some(descriptor);
    }

    /// Takes back what could not be sent; whether there was anything.
    pub(crate) fn unload(&self) -> bool {
        lock(&self.outgoing).take().is_some()
    }

    /// What came with a frame that has just been read, if anything did.
    pub(crate) fn take(&self) -> Option<Option<OwnedFd>> {
        lock(&self.incoming).pop_front()
    }

    /// Sends bytes, and with the first of them the descriptor that waits.
    pub(crate) fn send(&self, socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut outgoing = lock(&self.outgoing);
        let Some(descriptor) = outgoing.as_ref() else { return rustix::io::writev(socket, slices) };
        let descriptors = [descriptor.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = sendmsg(socket, slices, &mut ancillary, SendFlags::NOSIGNAL)?;
        *outgoing = None;
        Ok(sent)
    }

    /// Receives bytes and at most one descriptor; what more there is, is closed. One that this process has no
    /// number left for is lost, and leaves a gap, so that the next one goes to no frame but its own. Gives how many bytes.
    pub(crate) fn receive(&self, socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)?;
        let mut passed = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                passed = descriptors.next().map(Some);
            }
        }
        if passed.is_none() && received.flags.contains(ReturnFlags::CTRUNC) {
            passed = Some(None);
        }
        let mut incoming = lock(&self.incoming);
        if incoming.len() < AHEAD {
            incoming.extend(passed);
        }
        Ok(received.bytes)
    }
}
