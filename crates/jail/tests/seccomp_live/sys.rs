//! Forked children under a filter. Each gives its privileges up first, so that a wall that is missing breaks nothing.

#![expect(unsafe_code, reason = "fork, ptrace, system calls by number, and int 0x80")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use jail::seccomp::{Program, install};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
}

/// Runs `body` in a child, which ends with its result.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> Ended {
    wait(start(body)).unwrap()
}

/// Runs `body` in an unprivileged child under the filter.
pub(crate) fn under(program: &Program, body: impl FnOnce() -> i32) -> Ended {
    fork(|| {
        give_privileges_up();
        install(program).unwrap();
        body()
    })
}

/// A system call by its number: zero, or the error.
pub(crate) fn call(number: i64, arguments: [u64; 6]) -> i32 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the callers pass numbers that the filter refuses, or arguments that point nowhere.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

/// Sets no_new_privs, as a filter demands, and leaves root's ids.
pub(crate) fn give_privileges_up() {
    const NOBODY: u32 = 65534;
    // SAFETY: these calls take plain numbers; a null list of groups with length zero is an empty one.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
            assert_eq!(libc::setresgid(NOBODY, NOBODY, NOBODY), 0);
            assert_eq!(libc::setresuid(NOBODY, NOBODY, NOBODY), 0);
        }
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    }
}

/// Puts a filter on a program that is about to be started.
pub(crate) fn start_under(command: &mut std::process::Command, program: &Program) {
    use std::os::unix::process::CommandExt as _;
    let program = program.clone();
    let prepare = move || {
        // SAFETY: the call takes plain numbers.
        let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(set, 0);
        install(&program).map_err(std::io::Error::from_raw_os_error)
    };
    // SAFETY: between fork and exec this makes two system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

fn start(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `body` and ends; it never returns into the test.
    match unsafe { libc::fork() } {
        0 => {
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: ends the process without the clean-up that belongs to the parent.
            unsafe { libc::_exit(code) }
        }
        pid => {
            assert!(pid > 0);
            pid
        }
    }
}

/// Waits for a change of the child: none if it has merely stopped.
fn wait(pid: i32) -> Option<Ended> {
    let mut status = 0;
    // SAFETY: the status is ours to be written.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) {
        Some(Ended::Code(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        Some(Ended::Signal(libc::WTERMSIG(status)))
    } else {
        None
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{getpid_by_int80, skip_a_call_and_answer};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use jail::seccomp::{Program, install};

    use super::{Ended, call, give_privileges_up, start, wait};

    /// getpid by the 32-bit entry.
    pub(crate) fn getpid_by_int80() -> i32 {
        const GETPID_OF_I386: i32 = 20;
        let result: i32;
        // SAFETY: getpid has no arguments; the 32-bit entry may clear r8 to r11 and keeps the rest.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") GETPID_OF_I386 => result,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        result
    }

    /// Traces a child under the filter, replaces its next call by -1, and gives it `answer` as the result; the child
    /// ends with what it got.
    pub(crate) fn skip_a_call_and_answer(program: &Program, answer: u8) -> Ended {
        const RESULT: usize = 8 * libc::RAX as usize;
        const NUMBER: usize = 8 * libc::ORIG_RAX as usize;
        let pid = start(|| {
            give_privileges_up();
            install(program).unwrap();
            assert_eq!(call(libc::SYS_ptrace, [libc::PTRACE_TRACEME as u64, 0, 0, 0, 0, 0]), 0);
            // SAFETY: a signal to oneself, and a call without arguments.
            unsafe {
                libc::raise(libc::SIGSTOP);
                libc::syscall(libc::SYS_getppid) as i32
            }
        });
        let trace = |request, address: usize, data: i64| {
            // SAFETY: the requests made here pass plain numbers and write to no memory of ours.
            assert_eq!(unsafe { libc::ptrace(request, pid, address, data) }, 0);
        };
        // SAFETY: reads one word of the child's registers.
        let stopped_in = || unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, pid, NUMBER, 0) };
        assert_eq!(wait(pid), None);
        loop {
            trace(libc::PTRACE_SYSCALL, 0, 0);
            if let Some(ended) = wait(pid) {
                return ended;
            }
            if stopped_in() == libc::SYS_getppid {
                trace(libc::PTRACE_POKEUSER, NUMBER, -1);
                trace(libc::PTRACE_SYSCALL, 0, 0);
                if let Some(ended) = wait(pid) {
                    return ended;
                }
                trace(libc::PTRACE_POKEUSER, RESULT, answer.into());
            }
        }
    }
}
