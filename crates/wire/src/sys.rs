//! What a socket needs that only the kernel and the runtime can vouch for.

#![expect(unsafe_code, reason = "registering with the runtime, and memory that the kernel initialises")]

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::slice;

use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf};

use crate::passage::Passage;

/// Registers a descriptor with the runtime.
pub(crate) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same file, until what owns it is dropped, which is the
    // registration itself.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// Receives into what is free of `buffer`.
pub(crate) fn receive(end: &AsyncFd<OwnedFd>, passage: &Passage, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
    // SAFETY: nothing that was initialised is made uninitialised: only the kernel writes here.
    let free = unsafe { buffer.unfilled_mut() };
    // SAFETY: the same memory; any byte is a `u8`, and none is read before the kernel has written it.
    let free = unsafe { slice::from_raw_parts_mut(free.as_mut_ptr().cast::<u8>(), free.len()) };
    let length = passage.receive(end.as_fd(), free)?;
    // SAFETY: the kernel has written so many bytes at the beginning of what was free.
    unsafe { buffer.assume_init(length) };
    buffer.advance(length);
    Ok(())
}
