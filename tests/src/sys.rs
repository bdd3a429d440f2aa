//! The few calls that the standard library does not have.

#![expect(unsafe_code, reason = "calls of the C library that take pointers or functions")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// PTRACE_SECCOMP_GET_FILTER, which the bindings lack.
const GET_FILTER: usize = 0x420c;

static AT_EXIT: OnceLock<PathBuf> = OnceLock::new();

/// Removes a directory when this process ends, statics being never dropped.
pub(crate) fn remove_at_exit(directory: &Path) {
    if AT_EXIT.set(directory.to_owned()).is_ok() {
        // SAFETY: the handler is a plain function without arguments that cannot unwind.
        unsafe { libc::atexit(remove) };
    }
}

extern "C" fn remove() {
    if let Some(directory) = AT_EXIT.get() {
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// The filter on system calls that a live process is under; only root may look. The process is stopped meanwhile.
///
/// # Errors
/// What the kernel says, also when there is no such filter.
pub fn seccomp_filter(pid: i32) -> io::Result<Vec<libc::sock_filter>> {
    let trace = |request: usize, address: usize, data: usize| {
        // SAFETY: `data` is null or room for as many instructions as the kernel has just said there are.
        let result = unsafe { libc::syscall(libc::SYS_ptrace, request, pid as usize, address, data) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
    };
    trace(libc::PTRACE_SEIZE as usize, 0, 0)?;
    trace(libc::PTRACE_INTERRUPT as usize, 0, 0)?;
    let mut status = 0;
    // SAFETY: the status outlives the call. The process may be any thread's child, or nobody's.
    if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let read = || {
        let length = trace(GET_FILTER, 0, 0)?;
        let mut program = vec![libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; length];
        trace(GET_FILTER, 0, program.as_mut_ptr() as usize)?;
        Ok(program)
    };
    let program = read();
    trace(libc::PTRACE_DETACH as usize, 0, 0)?;
    program
}
