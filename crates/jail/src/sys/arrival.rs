//! What a process after clone receives from its parent and passes on to its program: room, bytes, descriptors and
//! arguments, none of them allocated.

use std::ffi::CStr;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{Errno, NULL, Outcome, check};
use crate::blueprint::MOST_ARGUMENTS;
use crate::network::{HandedOut, MOST_HANDED_OUT};

/// The arguments of a program as execve takes them, in an array that needs no allocation.
pub(crate) struct Pointers<'strings> {
    /// Null wherever nothing is, so that it is always terminated.
    pointers: [*const libc::c_char; MOST_ARGUMENTS + 1],
    count: usize,
    _strings: std::marker::PhantomData<&'strings CStr>,
}

impl<'strings> Pointers<'strings> {
    pub(crate) const fn new() -> Self {
        let pointers = [std::ptr::null(); MOST_ARGUMENTS + 1];
        Self { pointers, count: 0, _strings: std::marker::PhantomData }
    }

    pub(crate) fn push(&mut self, string: &'strings CStr) -> Outcome {
        let free = self.pointers[..MOST_ARGUMENTS].get_mut(self.count).ok_or(Errno(libc::E2BIG))?;
        *free = string.as_ptr();
        self.count += 1;
        Ok(())
    }
}

/// Replaces the process by a program without any variables; returns only to say why it could not.
pub(crate) fn execute(path: &CStr, arguments: &Pointers<'_>) -> Errno {
    let nothing: [*const libc::c_char; 1] = [std::ptr::null()];
    match raw!(libc::SYS_execve, path.as_ptr(), arguments.pointers.as_ptr(), nothing.as_ptr()) {
        Err(errno) => errno,
        Ok(_) => Errno(libc::EINVAL),
    }
}

/// Memory that nothing backs until it is written, for a child to fill.
pub(crate) struct Room {
    address: *mut u8,
    size: usize,
}

impl Room {
    pub(crate) fn new(size: usize) -> Outcome<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let address = raw!(libc::SYS_mmap, NULL, size, protection, flags, -1, 0)?;
        Ok(Self { address: std::ptr::with_exposed_provenance_mut(address as usize), size })
    }

    pub(crate) const fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the kernel has mapped these zeroed bytes for this value alone, which lives as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.size) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = raw!(libc::SYS_munmap, self.address, self.size);
    }
}

/// Receives bytes and the descriptors that come with them; how many of each.
pub(crate) fn receive(
    socket: RawFd,
    buffer: &mut [u8],
    descriptors: &mut [RawFd],
) -> Outcome<(usize, usize)> {
    // Room for as many descriptors as the kernel passes on at once, aligned as the header wants it.
    let mut control = [0u64; 160];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let count = loop {
        match raw!(libc::SYS_recvmsg, socket, &raw mut header, libc::MSG_CMSG_CLOEXEC) {
            Ok(0) => return Err(Errno(libc::EPIPE)),
            Ok(count) => break count as usize,
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    };
    let mut received = 0;
    // SAFETY: the kernel has filled the header and the control buffer that it points to, both of which live here.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !message.is_null() {
        // SAFETY: as above; the data of a message of this kind are whole descriptors.
        unsafe {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                let bytes = (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..bytes / size_of::<RawFd>() {
                    let place = descriptors.get_mut(received).ok_or(Errno(libc::E2BIG))?;
                    *place = data.add(index).read_unaligned();
                    received += 1;
                }
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok((count, received))
}

/// Sends descriptors and one byte, which says what they are.
pub(crate) fn hand_out(socket: RawFd, what: HandedOut, descriptors: &[BorrowedFd<'_>]) -> Outcome {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDED_OUT))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno(libc::E2BIG));
    }
    // SAFETY: the number is one of those that the caller keeps open for as long as it builds.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let sent = sendmsg(socket, &[IoSlice::new(&[what as u8])], &mut ancillary, SendFlags::NOSIGNAL);
    sent.map(drop).map_err(|errno| Errno(errno.raw_os_error()))
}
