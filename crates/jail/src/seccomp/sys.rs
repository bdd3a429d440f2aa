//! Puts a filter on the calling process. It runs in a child after clone: one system call, no allocation, no lock.

#![expect(unsafe_code, reason = "a system call that takes a pointer")]

use syscalls::{Sysno, syscall3};

use super::filter::Program;

/// Puts the filter on the calling thread and on all that it will start, for good.
///
/// The thread must have set no_new_privs, or hold CAP_SYS_ADMIN in its user namespace.
///
/// # Errors
/// The kernel's error number.
pub fn install(program: &Program) -> Result<(), i32> {
    let instructions = program.instructions();
    let described = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| libc::E2BIG)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    let operation = libc::SECCOMP_SET_MODE_FILTER as usize;
    // SAFETY: the kernel copies `len` instructions from `filter` and writes nothing; both outlive the call.
    let installed = unsafe { syscall3(Sysno::seccomp, operation, 0, (&raw const described).addr()) };
    installed.map(drop).map_err(|errno| errno.into_raw())
}
