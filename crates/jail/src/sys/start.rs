//! Other programs, started without a copy of our memory, and where a new process begins.

use std::convert::Infallible;
use std::ffi::{CString, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use syscalls::{Sysno, syscall3};

use super::{NULL, Outcome, check, kill, last_errno, reap};

/// What a new process runs on: many times what its few frames take.
type Stack = [MaybeUninit<u128>; 256];

/// A program on its way. It shares our memory until it has become that program: a copy would cost the fork, and a page
/// fault for each page that either side writes. Nobody waits for it meanwhile, as `vfork` would.
#[derive(Debug)]
pub(crate) struct Started {
    pid: i32,
    pidfd: OwnedFd,
    /// What it reads and runs on until then; whoever drops this has it ended first, or leaves it where it is.
    start: ManuallyDrop<Box<Start>>,
}

/// What a program is given.
#[derive(Debug)]
pub(crate) struct Given<'streams> {
    pub(crate) path: CString,
    /// Its name first.
    pub(crate) words: Vec<CString>,
    /// All of its variables.
    pub(crate) variables: Vec<CString>,
    pub(crate) stdin: BorrowedFd<'streams>,
    /// For stdout and stderr.
    pub(crate) outputs: BorrowedFd<'streams>,
    pub(crate) others: Others,
}

/// What becomes of other descriptors of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// The program has none, whatever it does.
    Closed,
    /// It sees to that itself, first of all.
    LeftToIt,
}

/// Addresses of what the kernel is to read, and what they lead to.
#[derive(Debug)]
struct Start {
    path: CString,
    arguments: Vec<usize>,
    environment: Vec<usize>,
    _words: [Vec<CString>; 2],
    streams: [RawFd; 3],
    others: Others,
    stack: Stack,
}

impl Started {
    /// Starts a program that has nothing of ours but what it is given. A failure to become it is its exit code.
    pub(crate) fn new(given: Given<'_>) -> Outcome<Self> {
        let Given { path, words, variables, stdin, outputs, others } = given;
        let list = |words: &[CString]| words.iter().map(|word| address(word.as_ptr())).chain([0]).collect();
        let mut start = Box::new(Start {
            path,
            arguments: list(&words),
            environment: list(&variables),
            _words: [words, variables],
            streams: [stdin, outputs, outputs].map(|stream| stream.as_raw_fd()),
            others,
            stack: [MaybeUninit::uninit(); _],
        });
        let stack = start.stack.as_mut_ptr_range().end.cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD;
        let (passed, mut pidfd) = ((&raw const *start).cast_mut().cast::<c_void>(), -1);
        // SAFETY: the new process calls only `leave`, on a stack that nothing else uses. What it reads is neither changed
        // nor freed before it has ended or become its program, which is what `drop` and `let_go` see to.
        match unsafe { libc::clone(leave, stack, flags, passed, &raw mut pidfd) } {
            -1 => Err(last_errno()),
            pid => {
                // SAFETY: the kernel has just made this descriptor for us.
                let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
                Ok(Self { pid, pidfd, start: ManuallyDrop::new(start) })
            }
        }
    }

    /// Lets it outlive us, by what is left of it for us: what it runs on is given back once it is known to have left.
    pub(crate) fn let_go(self) -> Gone {
        let mut started = ManuallyDrop::new(self);
        // SAFETY: neither is used again: what would have been dropped with them is forgotten here.
        let (pidfd, start) =
            unsafe { (ptr::read(&raw const started.pidfd), ManuallyDrop::take(&mut started.start)) };
        Gone { pidfd, start: Some(start) }
    }

    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has been waited for is neither there to be killed nor to be reaped.
        let _ = kill(self.pidfd.as_fd());
        let _ = reap(self.pidfd.as_fd());
        // SAFETY: it is dropped here and nowhere else, and nobody runs on it any more.
        unsafe { ManuallyDrop::drop(&mut self.start) };
    }
}

/// A program that goes on without us.
#[derive(Debug)]
pub(crate) struct Gone {
    pidfd: OwnedFd,
    start: Option<Box<Start>>,
}

impl Gone {
    /// One that has not been given anything to run on.
    pub(crate) const fn new(pidfd: OwnedFd) -> Self {
        Self { pidfd, start: None }
    }

    /// It is known to have become its program.
    pub(crate) fn has_left(&mut self) {
        self.start = None;
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Outcome {
        reap(self.pidfd.as_fd())?;
        self.has_left();
        Ok(())
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        // It may still be on its way, and is not waited for.
        std::mem::forget(self.start.take());
    }
}

impl Start {
    /// Nothing of ours goes to a program that may have other privileges but what it is given.
    fn become_program(&self) -> Result<Infallible, c_int> {
        // First up and out of the way: one of ours may be at a number of theirs.
        let mut above = [0; 3];
        for (above, stream) in above.iter_mut().zip(self.streams) {
            *above = call(Sysno::fcntl, [stream as usize, libc::F_DUPFD_CLOEXEC as usize, 3])?;
        }
        for (stream, above) in above.into_iter().enumerate() {
            call(Sysno::dup3, [above, stream, 0])?;
        }
        if self.others == Others::Closed {
            call(Sysno::close_range, [3, u32::MAX as usize, 0])?;
        }
        let files = [
            address(self.path.as_ptr()),
            address(self.arguments.as_ptr()),
            address(self.environment.as_ptr()),
        ];
        call(Sysno::execve, files)?;
        Err(libc::EINVAL)
    }
}

/// The new process's whole life before its program.
extern "C" fn leave(start: *mut c_void) -> c_int {
    // SAFETY: it is the start that `Started::new` passed, which outlives this process's stay in it.
    let Err(errno) = unsafe { &*start.cast::<Start>() }.become_program();
    loop {
        let _ = call(Sysno::exit_group, [errno as usize, 0, 0]);
    }
}

/// A pointer as the kernel takes it. That the memory behind it is read is thereby known to the compiler.
fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// A raw system call; the error is its number. libc's wrapper would leave it in errno, which is the maker's too.
fn call(number: Sysno, [a, b, c]: [usize; 3]) -> Result<usize, c_int> {
    // SAFETY: every caller passes the arguments that the call takes, and pointers to live memory.
    unsafe { syscall3(number, a, b, c) }.map_err(|errno| errno.into_raw())
}

/// The processors that a process may run on.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    words: [u64; 128],
    size: usize,
}

impl Processors {
    /// Ours.
    pub(crate) fn own() -> Outcome<Self> {
        let mut words = [0; 128];
        let size = raw!(libc::SYS_sched_getaffinity, 0, size_of_val(&words), words.as_mut_ptr())? as usize;
        Ok(Self { words, size })
    }

    /// Without the one that we run on at the moment; none where that is the only one.
    fn others(self) -> Outcome<Option<Self>> {
        let mut here = 0_u32;
        raw!(libc::SYS_getcpu, &raw mut here, NULL, NULL)?;
        let others = self.without(here as usize);
        Ok(Some(others).filter(|others| others.first().is_some()))
    }

    const fn without(mut self, number: usize) -> Self {
        if number / 64 < self.words.len() {
            self.words[number / 64] &= !(1 << (number % 64));
        }
        self
    }

    fn first(&self) -> Option<usize> {
        let (at, word) = self.words.iter().enumerate().find(|(_, word)| **word != 0)?;
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// Lets a process run on these alone.
    fn give_to(&self, pid: i32) -> Outcome {
        raw!(libc::SYS_sched_setaffinity, pid, self.size, self.words.as_ptr()).map(drop)
    }

    /// Lets a process stay away from the one that we run on, where there is another, until it takes all again: the kernel
    /// wakes who is told something where it was told, as if whoever told it were about to wait.
    pub(crate) fn keep_elsewhere(self, pid: i32) -> Outcome {
        self.others()?.map_or(Ok(()), |others| others.give_to(pid))
    }

    /// As the kernel has them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).take(self.size).collect()
    }
}

/// Lets a process that was just made begin on another processor than ours, where there is one. The kernel leaves it behind
/// its maker when all are busy at that moment, and does not look again when one falls idle soon after.
pub(crate) fn send_elsewhere(pid: i32) -> Outcome {
    let all = Processors::own()?;
    let Some(others) = all.others()? else { return Ok(()) };
    others.give_to(pid)?;
    // It is only to begin there.
    all.give_to(pid)
}

/// Has two short-lived processes that were just made run beside each other: each is kept off one processor, the first off
/// ours. When a process becomes its program, the kernel looks for a place for it anew, and had put one behind the other.
pub(crate) fn keep_apart(first: i32, second: i32) -> Outcome {
    let all = Processors::own()?;
    let Some(others) = all.others()? else { return Ok(()) };
    others.give_to(first)?;
    others.first().map_or(Ok(()), |other| all.without(other).give_to(second))
}

/// Has the calling process run on these, as [`Processors::bytes`] has them. After clone: nothing is allocated.
pub(crate) fn take_processors(bytes: &[u8]) -> Outcome {
    raw!(libc::SYS_sched_setaffinity, 0, bytes.len(), bytes.as_ptr()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    fn exit_code(program: &CString, words: &[&str]) -> i32 {
        let words = words.iter().map(|word| CString::new(*word).unwrap()).collect();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let streams = null.as_fd();
        let given = Given {
            path: program.clone(),
            words,
            variables: vec![c"ONLY=this".to_owned()],
            stdin: streams,
            outputs: streams,
            others: Others::Closed,
        };
        let started = Started::new(given).unwrap();
        let status = waitid(WaitId::PidFd(started.pidfd()), WaitIdOptions::EXITED).unwrap();
        status.unwrap().exit_status().unwrap()
    }

    #[test]
    fn a_program_is_started_with_its_words_and_nothing_else() {
        let shell = c"/bin/sh".to_owned();
        assert_eq!(exit_code(&shell, &["sh", "-c", "exit 7"]), 7);
        let bare = "test \"$#\" = 1 || exit 1; test -z \"$HOME\" -a \"$ONLY\" = this || exit 2; ls -l /proc/self/fd | grep -q socket && exit 3; exit 0";
        let _open = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(exit_code(&shell, &["sh", "-c", bare, "sh", "one"]), 0);
        assert_eq!(exit_code(&c"/nowhere/at-all".to_owned(), &["x"]), libc::ENOENT);
    }

    #[test]
    fn where_a_process_begins_is_not_where_it_has_to_stay() {
        let mut process = Command::new("sleep").arg("30").spawn().unwrap();
        let pid = process.id().cast_signed();
        let allowed = |process: &Path| {
            let status = fs::read_to_string(process.join("status")).unwrap();
            status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned()
        };
        let (child, allowed_to_us) =
            (Path::new("/proc").join(pid.to_string()), allowed(Path::new("/proc/self")));
        send_elsewhere(pid).unwrap();
        assert_eq!(allowed(&child), allowed_to_us);
        let all = Processors::own().unwrap();
        all.keep_elsewhere(pid).unwrap();
        if all.words.iter().map(|word| word.count_ones()).sum::<u32>() > 1 {
            assert_ne!(allowed(&child), allowed_to_us);
        }
        all.give_to(pid).unwrap();
        assert_eq!(allowed(&child), allowed_to_us);
        take_processors(&all.bytes()).unwrap();
        assert_eq!(allowed(Path::new("/proc/self")), allowed_to_us);
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
