//! The fork, and the life of the new process until it becomes its program. Between the two it is a copy of one
//! thread of many: it makes raw system calls on memory that was laid out before and does nothing else. It
//! must never allocate, take a lock, or return.

#![expect(unsafe_code, reason = "fork, and raw system calls in the forked process")]

use std::convert::Infallible;
use std::ffi::{CString, c_char, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::process::{getgid, getuid};
use wire::Step;

use super::{Failure, Mould};
use crate::ends::Ends;
use crate::plan::Plan;
use crate::weaken::{Wall, Weaken};

/// A report is two numbers: the step and the error.
pub(super) const REPORT_LENGTH: usize = 2 * size_of::<i32>();

/// The first descriptor that a program is not started with.
const FIRST_CLOSED: usize = 3;

/// The highest signal number.
const LAST_SIGNAL: c_int = 64;

/// The version of `capset` that takes 64 bits for each set.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The exit code of a process that did not become its program; only the report is ever looked at.
const NOT_STARTED: usize = 127;

/// A plan as the kernel reads it. The pointers are into what it borrows.
pub(super) struct Launch<'a> {
    plan: &'a Plan,
    weaken: &'a Weaken,
    bounding_set: &'a [usize],
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    streams: [RawFd; 3],
    report: RawFd,
    terminal: bool,
    /// Whether the process has other ids than init.
    other_user: bool,
}

impl<'a> Launch<'a> {
    pub(super) fn new(plan: &'a Plan, mould: &'a Mould, inside: &'a Ends, report: &'a OwnedFd) -> Self {
        Self {
            plan,
            weaken: &mould.weaken,
            bounding_set: &mould.bounding_set,
            arguments: pointers(&plan.arguments),
            environment: pointers(&plan.environment),
            streams: inside.descriptors(),
            report: report.as_raw_fd(),
            terminal: matches!(inside, Ends::Terminal(_)),
            other_user: (plan.uid, plan.gid) != (getuid().as_raw(), getgid().as_raw()),
        }
    }

    /// Forks; the new process never returns from here.
    pub(super) fn fork(&self) -> io::Result<i32> {
        // clone and not fork: libc's fork runs handlers and takes locks for the sake of a child that goes on.
        // SAFETY: the flags share nothing with the child. The child calls only `become_program` and `give_up`,
        // which touch memory of its own copy and neither allocate nor unwind.
        let pid = unsafe {
            libc::syscall(libc::SYS_clone, libc::SIGCHLD as c_long, 0_usize, 0_usize, 0_usize, 0_usize)
        };
        match pid {
            0 => {
                let Err(failure) = self.become_program();
                self.give_up(failure)
            }
            pid if pid > 0 => Ok(pid as i32),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Everything between the fork and the program, in an order that matters: a session before the terminal,
    /// descriptors before anything that could block, capabilities while it still has the one to drop them with,
    /// the working directory as the user that will be in it.
    fn become_program(&self) -> Result<Infallible, Failure> {
        call(libc::SYS_setsid, [0; 5]).map_err(at(Step::Fork))?;
        self.take_descriptors().map_err(at(Step::Streams))?;
        if self.terminal {
            call(libc::SYS_ioctl, [0, libc::TIOCSCTTY as usize, 0, 0, 0]).map_err(at(Step::Streams))?;
        }
        reset_signal(libc::SIGPIPE).map_err(at(Step::Fork))?;
        if self.weaken.keeps(Wall::Capabilities) {
            self.drop_bounding_set().map_err(at(Step::Walls))?;
            self.become_user().map_err(at(Step::User))?;
            drop_capabilities().map_err(at(Step::Walls))?;
        } else {
            self.become_user_with_capabilities().map_err(at(Step::User))?;
        }
        if self.weaken.keeps(Wall::NoNewPrivileges) {
            call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])
                .map_err(at(Step::Walls))?;
        }
        call(libc::SYS_umask, [0o022, 0, 0, 0, 0]).map_err(at(Step::Walls))?;
        call(libc::SYS_chdir, [address(self.plan.workdir.as_ptr()), 0, 0, 0, 0])
            .map_err(at(Step::Workdir))?;
        unblock_signals().map_err(at(Step::Fork))?;
        self.execute().map_err(at(Step::Program))
    }

    /// Descriptors 0, 1 and 2 are the streams, and besides them there is only the report, which the program's
    /// start closes. None of the sources is below 3: init has /dev/null there.
    fn take_descriptors(&self) -> Result<(), c_int> {
        for (number, stream) in self.streams.iter().enumerate() {
            call(libc::SYS_dup3, [*stream as usize, number, 0, 0, 0])?;
        }
        if !self.weaken.keeps(Wall::Descriptors) {
            return Ok(());
        }
        let report = self.report as usize;
        if report > FIRST_CLOSED {
            call(libc::SYS_close_range, [FIRST_CLOSED, report - 1, 0, 0, 0])?;
        }
        call(libc::SYS_close_range, [report + 1, u32::MAX as usize, 0, 0, 0])?;
        Ok(())
    }

    fn become_user(&self) -> Result<(), c_int> {
        let (uid, gid) = (self.plan.uid, self.plan.gid as usize);
        match call(libc::SYS_setgroups, [1, address(&self.plan.gid), 0, 0, 0]) {
            // A user namespace with one id forbids it; then there is no other user to become either.
            Err(libc::EPERM) if !self.other_user => {}
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
        call(libc::SYS_setresgid, [gid, gid, gid, 0, 0])?;
        let uid = uid as usize;
        call(libc::SYS_setresuid, [uid, uid, uid, 0, 0])?;
        Ok(())
    }

    /// Empties the bounding set; where it cannot be emptied, the process does not start.
    fn drop_bounding_set(&self) -> Result<(), c_int> {
        self.bounding_set.iter().try_for_each(|capability| {
            call(libc::SYS_prctl, [libc::PR_CAPBSET_DROP as usize, *capability, 0, 0, 0]).map(|_| ())
        })
    }

    /// For the negative controls: another user with every capability that init has.
    #[cfg(feature = "weaken")]
    fn become_user_with_capabilities(&self) -> Result<(), c_int> {
        let prctl = |option: c_int, arguments: [usize; 2]| {
            call(libc::SYS_prctl, [option as usize, arguments[0], arguments[1], 0, 0])
        };
        prctl(libc::PR_SET_KEEPCAPS, [1, 0])?;
        self.become_user()?;
        let header = [CAPABILITY_VERSION, 0];
        let mut sets = [0_u32; 6];
        call(libc::SYS_capget, [address(&header), (&raw mut sets).expose_provenance(), 0, 0, 0])?;
        (sets[0], sets[2], sets[3], sets[5]) = (sets[1], sets[1], sets[4], sets[4]);
        call(libc::SYS_capset, [address(&header), address(&sets), 0, 0, 0])?;
        for capability in 0..u64::BITS as usize {
            let _ = prctl(libc::PR_CAP_AMBIENT, [libc::PR_CAP_AMBIENT_RAISE as usize, capability]);
        }
        Ok(())
    }

    #[cfg(not(feature = "weaken"))]
    fn become_user_with_capabilities(&self) -> Result<(), c_int> {
        self.become_user()
    }

    /// Tries the candidates as execvp does, except that what is not a program is never given to a shell.
    fn execute(&self) -> Result<Infallible, c_int> {
        let mut reason = libc::ENOENT;
        for candidate in &self.plan.candidates {
            let files = [
                address(candidate.as_ptr()),
                address(self.arguments.as_ptr()),
                address(self.environment.as_ptr()),
                0,
                0,
            ];
            match call(libc::SYS_execve, files) {
                Err(libc::ENOENT | libc::ENOTDIR) => {}
                Err(libc::EACCES) => reason = libc::EACCES,
                Err(errno) => return Err(errno),
                Ok(_) => {}
            }
        }
        Err(reason)
    }

    /// Reports the failure and ends the process.
    fn give_up(&self, failure: Failure) -> ! {
        let report = [failure.step as i32, failure.errno];
        let _ = call(libc::SYS_write, [self.report as usize, address(&report), REPORT_LENGTH, 0, 0]);
        loop {
            let _ = call(libc::SYS_exit_group, [NOT_STARTED, 0, 0, 0, 0]);
        }
    }
}

/// What `give_up` wrote. Each report is written and read whole.
pub(super) fn read_report([a, b, c, d, e, f, g, h]: [u8; REPORT_LENGTH]) -> Failure {
    let step = i32::from_ne_bytes([a, b, c, d]);
    let errno = i32::from_ne_bytes([e, f, g, h]);
    Failure { step: Step::try_from(step).unwrap_or(Step::Fork), errno }
}

/// A null-terminated array of pointers into `texts`.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Names the step that an error number belongs to.
fn at(step: Step) -> impl FnOnce(c_int) -> Failure {
    move |errno| Failure { step, errno }
}

/// A pointer as the kernel takes it. That the memory behind it is read is thereby known to the compiler.
fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// A raw system call. libc's wrappers are not used here: some act on every thread of a process that, in this
/// copy, has only one.
fn call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> Result<usize, c_int> {
    // SAFETY: every caller passes the arguments that the call takes, and pointers to live memory of theirs. What
    // the call does to the process is what this module is for. errno is this thread's own.
    unsafe {
        match libc::syscall(number, a, b, c, d, e) {
            -1 => Err(*libc::__errno_location()),
            result => Ok(result as usize),
        }
    }
}

/// A signal does again what it does by default.
fn reset_signal(signal: c_int) -> Result<(), c_int> {
    // The kernel's own struct, on both architectures four words: handler, flags, restorer, mask.
    let default = [0_usize; 4];
    call(libc::SYS_rt_sigaction, [signal as usize, address(&default), 0, size_of::<u64>(), 0]).map(|_| ())
}

/// Every signal that init has inherited as ignored does again what it does by default. What has a handler loses it
/// when a program starts, so that only SIGPIPE, which init itself ignores, is left for each process to reset.
pub(super) fn reset_inherited_signals() {
    for signal in (1..=LAST_SIGNAL).filter(|signal| *signal != libc::SIGPIPE) {
        let mut action = [0_usize; 4];
        let read = [signal as usize, 0, (&raw mut action).expose_provenance(), size_of::<u64>(), 0];
        if call(libc::SYS_rt_sigaction, read).is_ok() && action[0] == libc::SIG_IGN {
            let _ = reset_signal(signal);
        }
    }
}

fn unblock_signals() -> Result<(), c_int> {
    let none = 0_u64;
    let arguments = [libc::SIG_SETMASK as usize, address(&none), 0, size_of::<u64>(), 0];
    call(libc::SYS_rt_sigprocmask, arguments).map(|_| ())
}

/// The capabilities in the bounding set, which can only shrink.
pub(super) fn bounding_set() -> Vec<usize> {
    let held = |capability: &usize| {
        call(libc::SYS_prctl, [libc::PR_CAPBSET_READ as usize, *capability, 0, 0, 0]) == Ok(1)
    };
    (0..u64::BITS as usize).filter(held).collect()
}

/// Empties the permitted, effective and inheritable sets; the kernel empties the ambient set with them.
fn drop_capabilities() -> Result<(), c_int> {
    let header = [CAPABILITY_VERSION, 0];
    let none = [0_u32; 6];
    call(libc::SYS_capset, [address(&header), address(&none), 0, 0, 0]).map(|_| ())
}
