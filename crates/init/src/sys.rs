//! The system calls that no library wraps safely. Nothing here decides anything.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_call(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whom a process or a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Ids {
    /// This process's own. They do not change, and to ask for them is not cheap on every kernel.
    pub(crate) fn own() -> Self {
        Self { user: getuid().as_raw(), group: getgid().as_raw() }
    }
}

/// A write to a pipe that nobody reads fails, and does not end this process.
pub(crate) fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, and it does not fail for this signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Blocks SIGCHLD in this thread and the threads it makes, and gives a descriptor that is readable when one
/// came. No handler ever runs.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set that the later calls read; a descriptor that signalfd returns is
    // new and nobody else's.
    unsafe {
        check(libc::sigemptyset(set.as_mut_ptr()))?;
        check(libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD))?;
        match libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let descriptor = check(libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Blocks every signal in this thread.
pub(crate) fn block_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set that pthread_sigmask reads. Neither fails with valid arguments.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether this process has any child, reaped ones aside.
pub(crate) fn has_children() -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let mut found = MaybeUninit::uninit();
    // SAFETY: the kernel writes at most one siginfo to `found`, which is not read.
    check(unsafe { libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), options) }).is_ok()
}

/// Sends a signal to a process or, where the number is negative, to a process group.
pub(crate) fn signal(target: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes numbers only.
    check(unsafe { libc::kill(target, signal) }).map(drop)
}

/// Makes files that this thread creates belong to these ids. Where it may not, they stay its own; the kernel
/// tells the two apart only by asking again, and the process could then not become that user either.
pub(crate) fn set_file_ids(ids: Ids) {
    // SAFETY: both calls take numbers only. They are raw because libc's act on every thread.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, ids.group);
        libc::syscall(libc::SYS_setfsuid, ids.user);
    }
    // A change of ids sets this to the machine's default for set-user-id programs, which may be "dumpable".
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Does something as another user: this process, which has one thread, acts as that one meanwhile, and then as itself again.
/// gVisor's kernel makes whoever changes these ids undumpable, and knows no setting that says otherwise.
pub(crate) fn act_as<T>(other: Ids, own: Ids, act: impl FnOnce() -> T) -> io::Result<T> {
    const SAME: libc::c_long = -1;
    // SAFETY: it takes numbers only. It is raw because libc's acts on every thread.
    let set_user = |ids: Ids| check_call(unsafe { libc::syscall(libc::SYS_setresuid, SAME, ids.user, SAME) });
    // SAFETY: as above.
    let set_group =
        |ids: Ids| check_call(unsafe { libc::syscall(libc::SYS_setresgid, SAME, ids.group, SAME) });
    // A group is changed by whoever acts as init's own user, who has the capability.
    set_group(other)?;
    if let Err(error) = set_user(other) {
        set_group(own)?;
        return Err(error);
    }
    let done = act();
    if set_user(own).and_then(|()| set_group(own)).is_err() {
        // An init that cannot be itself again is none, and everything ends with it.
        std::process::abort();
    }
    Ok(done)
}

/// Reads into what is free of `buffer`, which is not written before.
pub(crate) fn read_into(source: impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
    // SAFETY: nothing that was initialised is made uninitialised: the kernel only writes here.
    let (filled, _) = rustix::io::read(source, unsafe { buffer.unfilled_mut() })?;
    let count = filled.len();
    // SAFETY: the kernel has written `count` bytes at the beginning of what was free.
    unsafe { buffer.assume_init(count) };
    buffer.advance(count);
    Ok(())
}

/// Makes a user namespace for this process, which has one thread.
pub(crate) fn make_user_namespace() -> io::Result<()> {
    // SAFETY: it takes a number, and changes nothing that memory safety relies on.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
}

/// Gives up every capability of this thread, for good.
pub(crate) fn drop_all_capabilities() -> io::Result<()> {
    const VERSION: u32 = 0x2008_0522;
    const LAST: libc::c_ulong = 63;
    for capability in 0..=LAST {
        // SAFETY: it takes numbers only.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // The kernel knows no such capability, nor any higher one.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    let (header, none) = ([VERSION, 0], [0_u32; 6]);
    // SAFETY: the kernel reads a header and three sets of two words each, and writes nothing.
    let set = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    check_call(set)
}

/// Puts a filter on this thread and all that it will make, for good. `bytes` are instructions of eight bytes each.
pub(crate) fn install_filter(bytes: &[u8]) -> io::Result<()> {
    let one = |step: &[u8]| libc::sock_filter {
        code: u16::from_ne_bytes([step[0], step[1]]),
        jt: step[2],
        jf: step[3],
        k: u32::from_ne_bytes([step[4], step[5], step[6], step[7]]),
    };
    let mut instructions: Vec<libc::sock_filter> = bytes.chunks_exact(8).map(one).collect();
    let length = u16::try_from(instructions.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    // SAFETY: the kernel copies `len` instructions from `filter` and writes nothing; both outlive the call.
    let set =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check_call(set)
}

/// Registers a descriptor with the runtime.
pub(crate) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same file, until what owns it is dropped, which is the
    // registration itself.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}
