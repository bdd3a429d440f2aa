//! A byte of a file, shared with whoever reads the file: it can be set by a process that may open none.

#![expect(unsafe_code, reason = "memory that is shared with a file")]

use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};

/// The first byte of a file.
pub(crate) struct Flag(&'static AtomicU8);

impl Flag {
    /// Maps a file that is not empty; none where that cannot be done.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        if file.metadata().ok()?.len() == 0 {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; it replaces nothing and is never taken away.
        let address = unsafe { mmap(std::ptr::null_mut(), 1, access, MapFlags::SHARED, &file, 0) }.ok()?;
        // SAFETY: the page is mapped for good, holds at least one byte of the file, and is only used as this atomic.
        Some(Self(unsafe { AtomicU8::from_ptr(address.cast()) }))
    }

    /// Sets it, for whoever looks at the file.
    pub(crate) fn set(&self) {
        self.0.store(b'1', Ordering::SeqCst);
    }

    /// Whether whoever reads it has answered.
    pub(crate) fn is_released(&self) -> bool {
        self.0.load(Ordering::SeqCst) == b'2'
    }
}
