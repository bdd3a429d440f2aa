//! The raw system calls that only a probe makes. They run after clone: nothing here allocates or locks.

#![expect(unsafe_code, reason = "system calls take raw pointers")]

use syscalls::{Sysno, syscall2, syscall3};

use crate::sys::{Errno, Outcome};

/// Closes off reading and writing of every file for the calling thread, by a Landlock rule set without rules.
pub(super) fn close_off_files() -> Outcome {
    const READ_AND_WRITE: u64 = 0b1110;
    let handled = READ_AND_WRITE;
    // SAFETY: the kernel reads eight bytes, the first field of its struct, and makes a descriptor.
    let rules = unsafe {
        syscall3(Sysno::landlock_create_ruleset, (&raw const handled).addr(), size_of_val(&handled), 0)
    };
    let rules = rules.map_err(|errno| Errno(errno.into_raw()))?;
    // SAFETY: the call takes a descriptor and flags, no pointer.
    let restricted = unsafe { syscall2(Sysno::landlock_restrict_self, rules, 0) };
    restricted.map(drop).map_err(|errno| Errno(errno.into_raw()))
}
