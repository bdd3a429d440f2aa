//! The fork, and the life of the new process until it becomes its program. Between the two it runs in init's own
//! memory, on a stack of its own: it makes raw system calls on what was laid out before and does nothing else.
//! It must never allocate, take a lock, write to anything but its stack, or return.
//!
//! To share the memory and not to copy it is what makes an exec fast: a copy costs the fork itself and, after
//! it, a page fault for each page that either side writes.

#![expect(unsafe_code, reason = "clone, and raw system calls in the new process")]

use std::convert::Infallible;
use std::ffi::{CString, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use syscalls::{Sysno, syscall5};
use wire::Step;

use super::{Failure, Memory, Mould};
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

/// What the new process runs on: many times what its few frames take.
type Stack = [MaybeUninit<u128>; 1024];

/// A plan as the kernel reads it, and the stack to carry it out on. The addresses are of what the plan holds.
/// It must be kept until the process has left it: until the report's other end is closed.
#[derive(Debug)]
pub(super) struct Launch {
    plan: Plan,
    weaken: Weaken,
    arguments: Vec<usize>,
    environment: Vec<usize>,
    streams: [RawFd; 3],
    report: RawFd,
    terminal: bool,
    /// Whether the process has other ids than init.
    other_user: bool,
    stack: Stack,
}

impl Launch {
    pub(super) fn new(plan: Plan, mould: &Mould, inside: &Ends, report: &OwnedFd) -> Box<Self> {
        Box::new(Self {
            arguments: addresses(&plan.arguments),
            environment: addresses(&plan.environment),
            streams: inside.descriptors(),
            report: report.as_raw_fd(),
            terminal: matches!(inside, Ends::Terminal(_)),
            other_user: mould.other_user(&plan).is_some(),
            stack: [MaybeUninit::uninit(); _],
            plan,
            weaken: mould.weaken.clone(),
        })
    }

    /// Makes the process. The calling thread has every signal blocked, so that no handler runs in it.
    pub(super) fn fork(&mut self, memory: Memory) -> io::Result<i32> {
        let shared = match memory {
            Memory::Shared => libc::CLONE_VM,
            Memory::Copied => 0,
        };
        let stack = self.stack.as_mut_ptr_range().end.cast::<c_void>();
        let launch = (&raw const *self).cast_mut().cast::<c_void>();
        // SAFETY: the new process calls only `leave`, on a stack that nothing else uses. What it reads, this
        // launch, is not changed or freed before it is gone, which is what `Leaving` is for.
        match unsafe { libc::clone(leave, stack, shared | libc::SIGCHLD, launch) } {
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(pid),
        }
    }

    /// Everything between the fork and the program, in an order that matters: descriptors first, as it may hold the
    /// report of one that is forked next, and before anything that could block; a session before the terminal;
    /// capabilities while it still has the one to drop them with; the working directory as the user that will be in it.
    fn become_program(&self) -> Result<Infallible, Failure> {
        self.take_descriptors().map_err(at(Step::Streams))?;
        call(Sysno::setsid, [0; 5]).map_err(at(Step::Fork))?;
        if self.terminal {
            call(Sysno::ioctl, [0, libc::TIOCSCTTY as usize, 0, 0, 0]).map_err(at(Step::Streams))?;
        }
        reset_signal(libc::SIGPIPE).map_err(at(Step::Fork))?;
        if self.weaken.keeps(Wall::Capabilities) {
            self.become_user().map_err(at(Step::User))?;
            drop_capabilities().map_err(at(Step::Walls))?;
        } else {
            self.become_user_with_capabilities().map_err(at(Step::User))?;
        }
        call(Sysno::chdir, [address(self.plan.workdir.as_ptr()), 0, 0, 0, 0]).map_err(at(Step::Workdir))?;
        unblock_signals().map_err(at(Step::Fork))?;
        self.execute().map_err(at(Step::Program))
    }

    /// Descriptors 0, 1 and 2 are the streams, and besides them there is only the report, which the program's
    /// start closes. None of the sources is below 3: init has others there.
    fn take_descriptors(&self) -> Result<(), c_int> {
        for (number, stream) in self.streams.iter().enumerate() {
            call(Sysno::dup3, [*stream as usize, number, 0, 0, 0])?;
        }
        if !self.weaken.keeps(Wall::Descriptors) {
            return Ok(());
        }
        let report = self.report as usize;
        if report > FIRST_CLOSED {
            call(Sysno::close_range, [FIRST_CLOSED, report - 1, 0, 0, 0])?;
        }
        call(Sysno::close_range, [report + 1, u32::MAX as usize, 0, 0, 0])?;
        Ok(())
    }

    fn become_user(&self) -> Result<(), c_int> {
        let (uid, gid) = (self.plan.uid, self.plan.gid as usize);
        match call(Sysno::setgroups, [1, address(&self.plan.gid), 0, 0, 0]) {
            // A user namespace with one id forbids it; then there is no other user to become either.
            Err(libc::EPERM) if !self.other_user => {}
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
        call(Sysno::setresgid, [gid, gid, gid, 0, 0])?;
        let uid = uid as usize;
        call(Sysno::setresuid, [uid, uid, uid, 0, 0])?;
        Ok(())
    }

    /// For the negative controls: another user with every capability that init has.
    #[cfg(feature = "weaken")]
    fn become_user_with_capabilities(&self) -> Result<(), c_int> {
        let prctl = |option: c_int, arguments: [usize; 2]| {
            call(Sysno::prctl, [option as usize, arguments[0], arguments[1], 0, 0])
        };
        prctl(libc::PR_SET_KEEPCAPS, [1, 0])?;
        self.become_user()?;
        let header = [CAPABILITY_VERSION, 0];
        let mut sets = [0_u32; 6];
        call(Sysno::capget, [address(&header), (&raw mut sets).expose_provenance(), 0, 0, 0])?;
        (sets[0], sets[2], sets[3], sets[5]) = (sets[1], sets[1], sets[4], sets[4]);
        call(Sysno::capset, [address(&header), address(&sets), 0, 0, 0])?;
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
            match call(Sysno::execve, files) {
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
        let _ = call(Sysno::write, [self.report as usize, address(&report), REPORT_LENGTH, 0, 0]);
        loop {
            let _ = call(Sysno::exit_group, [NOT_STARTED, 0, 0, 0, 0]);
        }
    }
}

/// The new process's whole life before its program.
extern "C" fn leave(launch: *mut c_void) -> c_int {
    // SAFETY: it is the launch that `fork` was called on, which outlives this process's stay in it.
    let launch = unsafe { &*launch.cast::<Launch>() };
    let Err(failure) = launch.become_program();
    launch.give_up(failure)
}

/// What `give_up` wrote. Each report is written and read whole.
pub(super) fn read_report([a, b, c, d, e, f, g, h]: [u8; REPORT_LENGTH]) -> Failure {
    let step = i32::from_ne_bytes([a, b, c, d]);
    let errno = i32::from_ne_bytes([e, f, g, h]);
    Failure { step: Step::try_from(step).unwrap_or(Step::Fork), errno }
}

/// A null-terminated array of pointers to `texts`.
fn addresses(texts: &[CString]) -> Vec<usize> {
    texts.iter().map(|text| address(text.as_ptr())).chain([0]).collect()
}

/// A pointer as the kernel takes it. That the memory behind it is read is thereby known to the compiler.
fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// A raw system call; the error is its number. Not libc's wrappers: they leave their error in errno, which the new
/// process shares with the thread that made it, and some act on every thread.
fn call(number: Sysno, [a, b, c, d, e]: [usize; 5]) -> Result<usize, c_int> {
    // SAFETY: every caller passes the arguments that the call takes, and pointers to live memory of theirs. What
    // the call does to the process is what this module is for.
    unsafe { syscall5(number, a, b, c, d, e) }.map_err(|errno| errno.into_raw())
}

/// Names the step that an error number belongs to.
fn at(step: Step) -> impl FnOnce(c_int) -> Failure {
    move |errno| Failure { step, errno }
}

/// A signal does again what it does by default.
fn reset_signal(signal: c_int) -> Result<(), c_int> {
    // The kernel's own struct, on both architectures four words: handler, flags, restorer, mask.
    let default = [0_usize; 4];
    call(Sysno::rt_sigaction, [signal as usize, address(&default), 0, size_of::<u64>(), 0]).map(|_| ())
}

/// Every signal that init has inherited as ignored does again what it does by default. What has a handler loses it
/// when a program starts, so that only SIGPIPE, which init itself ignores, is left for each process to reset.
pub(super) fn reset_inherited_signals() {
    for signal in (1..=LAST_SIGNAL).filter(|signal| *signal != libc::SIGPIPE) {
        let mut action = [0_usize; 4];
        let read = [signal as usize, 0, (&raw mut action).expose_provenance(), size_of::<u64>(), 0];
        if call(Sysno::rt_sigaction, read).is_ok() && action[0] == libc::SIG_IGN {
            let _ = reset_signal(signal);
        }
    }
}

fn unblock_signals() -> Result<(), c_int> {
    let none = 0_u64;
    let arguments = [libc::SIG_SETMASK as usize, address(&none), 0, size_of::<u64>(), 0];
    call(Sysno::rt_sigprocmask, arguments).map(|_| ())
}

/// Empties the bounding set of this thread, and thereby of every process that it makes. The thread itself keeps
/// what it has: the set is what executing a file can give.
pub(super) fn empty_bounding_set() -> io::Result<()> {
    let prctl = |option: c_int, capability| call(Sysno::prctl, [option as usize, capability, 0, 0, 0]);
    for capability in 0..u64::BITS as usize {
        let dropped = match prctl(libc::PR_CAPBSET_READ, capability) {
            Ok(0) => continue,
            // The kernel knows no such capability, nor any higher one.
            Err(libc::EINVAL) => break,
            Ok(_) => prctl(libc::PR_CAPBSET_DROP, capability),
            Err(errno) => Err(errno),
        };
        dropped.map_err(io::Error::from_raw_os_error)?;
    }
    Ok(())
}

/// Whether executing a file can give nothing, as the kernel's own text says. That is for kernels on which a call is dear,
/// and where the runtime was told to leave the set empty.
pub(super) fn has_empty_bounding_set() -> bool {
    let mut text = [0; 4096];
    let file = rustix::fs::open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let length = file.and_then(|file| rustix::io::read(file, &mut text)).unwrap_or(0);
    is_said_to_be_empty(&text[..length])
}

/// One that is not told of, or not to its end, is not empty.
fn is_said_to_be_empty(status: &[u8]) -> bool {
    let mut lines = status.split_inclusive(|byte| *byte == b'\n');
    let set = lines.find_map(|line| line.strip_prefix(b"CapBnd:")).and_then(|set| set.strip_suffix(b"\n"));
    set.is_some_and(|set| set.trim_ascii().len() == 16 && set.trim_ascii().iter().all(|digit| *digit == b'0'))
}

/// Empties the permitted, effective and inheritable sets; the kernel empties the ambient set with them.
fn drop_capabilities() -> Result<(), c_int> {
    let header = [CAPABILITY_VERSION, 0];
    let none = [0_u32; 6];
    call(Sysno::capset, [address(&header), address(&none), 0, 0, 0]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::is_said_to_be_empty;

    #[test]
    fn a_bounding_set_is_empty_where_that_is_said_to_the_end() {
        let told = |set: &str| is_said_to_be_empty(format!("Name:\tinit\n{set}Seccomp:\t0\n").as_bytes());
        assert!(told("CapBnd:\t0000000000000000\n"));
        for other in ["CapBnd:\t0000000000000020\n", "CapBnd:\t\n", "CapEff:\t0000000000000000\n", ""] {
            assert!(!told(other), "{other}");
        }
        assert!(!is_said_to_be_empty(b"CapBnd:\t0000000000000000"), "more may follow");
    }
}
