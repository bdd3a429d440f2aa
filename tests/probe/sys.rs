//! Raw system calls, with whatever arguments: that the kernel may refuse them is the point.

#![expect(unsafe_code, reason = "system calls with arguments of any kind")]

use std::ffi::{CString, c_long};

/// What a call came to: a number, or an error number.
pub(crate) type Outcome = Result<usize, i32>;

/// One call.
pub(crate) fn call(number: c_long, arguments: &[usize]) -> Outcome {
    let at = |index: usize| arguments.get(index).copied().unwrap_or_default();
    // SAFETY: callers pass pointers to live memory of theirs, null, or numbers that are no addresses of this
    // process; what the call does to the process is what the probe is for.
    match unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) } {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or_default()),
        result => Ok(result as usize),
    }
}

/// A file's own pages, which nobody gives back before the process ends.
pub(crate) fn map_shared(file: &std::fs::File, length: usize) -> &'static mut [u8] {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the map is a new one of this length, which is the file's own, and is never unmapped.
    unsafe {
        let start = mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0).unwrap();
        std::slice::from_raw_parts_mut(start.cast(), length)
    }
}

/// A call that the C library does not see, so that one that returns twice or never does no harm to its frames.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn bare_call(number: usize, argument: usize) -> isize {
    let result: isize;
    // SAFETY: all arguments are the same number, which is no address of this process; the caller is a child that
    // ends right after.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") argument, in("rsi") argument, in("rdx") argument,
            in("r10") argument, in("r8") argument, in("r9") argument,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// The same on this machine.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn bare_call(number: usize, argument: usize) -> isize {
    let result: isize;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number, inlateout("x0") argument => result,
            in("x1") argument, in("x2") argument, in("x3") argument, in("x4") argument, in("x5") argument,
        );
    }
    result
}

/// Ends the process without so much as a stack frame.
#[inline(always)]
pub(crate) fn end(code: i32) -> ! {
    loop {
        bare_call(libc::SYS_exit_group as usize, code as usize);
    }
}

/// getpid by the entry of 32-bit programs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn old_entry() -> isize {
    const GETPID: usize = 20;
    let result: isize;
    // SAFETY: the call takes no argument and touches no memory.
    unsafe { std::arch::asm!("int 0x80", inlateout("rax") GETPID => result) };
    result
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
}

/// Runs `body` in a child, which ends with what it returns, or by SIGALRM if that takes long.
pub(crate) fn in_child(body: impl FnOnce() -> i32) -> Ended {
    // SAFETY: the probe has one thread, so the child may do anything; it ends here.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let limit = libc::itimerval {
            it_interval: libc::timeval { tv_sec: 0, tv_usec: 100_000 },
            it_value: libc::timeval { tv_sec: 0, tv_usec: 100_000 },
        };
        // SAFETY: the limit outlives the call; _exit does not return.
        unsafe {
            libc::setitimer(libc::ITIMER_REAL, &raw const limit, std::ptr::null_mut());
            libc::_exit(body())
        }
    }
    let mut status = 0;
    // SAFETY: the status outlives the call.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } == -1 {}
    if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    }
}

/// Runs `body` in a child that nobody waits for.
pub(crate) fn fork(body: impl FnOnce()) {
    // SAFETY: the probe has one thread, so the child may do anything; it ends here.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        body();
        end(0);
    }
}

/// A text for the kernel; it lives as long as the probe does.
pub(crate) fn text(text: &str) -> usize {
    CString::new(text).expect("no NUL").into_raw() as usize
}

/// What an outcome is called in the probe's output.
pub(crate) fn name(outcome: Outcome) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(errno) => errno_name(errno),
    }
}

/// The name of an error number.
pub(crate) fn errno_name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EBADF, "EBADF"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EEXIST, "EEXIST"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EIO, "EIO"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EBUSY, "EBUSY"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ENOTSOCK, "ENOTSOCK"),
    ];
    let name = known.iter().find(|(number, _)| *number == errno).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("errno-{errno}"))
}

/// Prints one attempt.
pub(crate) fn report(attempt: &str, outcome: Outcome) {
    println!("{attempt} {}", name(outcome));
}
