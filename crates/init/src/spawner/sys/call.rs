//! A system call without libc. libc's wrappers leave their error in the thread's errno, and the new process shares
//! that with the thread it was made by; some also act on every thread of a process.

use std::arch::asm;
use std::ffi::{c_int, c_long};

/// The highest error number; results above its negation are errors.
const LAST_ERROR: isize = 4095;

/// A pointer as the kernel takes it. That the memory behind it is read is thereby known to the compiler.
pub(super) fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// A raw system call; the error is its number.
pub(super) fn call(number: c_long, arguments: [usize; 5]) -> Result<usize, c_int> {
    match raw(number, arguments) {
        result if (-LAST_ERROR..0).contains(&result) => Err(-result as c_int),
        result => Ok(result as usize),
    }
}

#[cfg(target_arch = "x86_64")]
fn raw(number: c_long, [a, b, c, d, e]: [usize; 5]) -> isize {
    let result;
    // SAFETY: every caller passes the arguments that the call takes, and pointers to live memory of theirs. What
    // the call does to the process is what these modules are for. The kernel changes only the registers named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
fn raw(number: c_long, [a, b, c, d, e]: [usize; 5]) -> isize {
    let result;
    // SAFETY: as for the other architecture.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            options(nostack),
        );
    }
    result
}
