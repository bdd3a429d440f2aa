//! The raw system calls that the walls are made of. Each takes data that was prepared before and returns the
//! kernel's error number: nothing here allocates or locks, so all of it may run after clone.

#![expect(unsafe_code, reason = "system calls take raw pointers")]

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// An error number of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Errno>;

/// Reads errno, which the calling thread has to itself.
fn last_errno() -> Errno {
    // SAFETY: the location of errno is always valid for the calling thread.
    Errno(unsafe { *libc::__errno_location() })
}

fn check(result: libc::c_long) -> Outcome<libc::c_long> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// One raw system call with up to six word-sized arguments.
macro_rules! raw {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        // SAFETY: the caller in this file passes pointers to live data of the size that the call expects.
        check(unsafe { libc::syscall($number $(, $argument)*) })
    };
}

mod arrival;
mod heritage;
mod mounts;
mod privileges;
mod start;

pub(crate) use arrival::{Pointers, Room, execute, hand_out, receive};
pub use heritage::Heritage;
pub(crate) use mounts::{
    MountAttributes, attach_tree, clone_tree, mount, set_mount_attributes, set_tree_attributes,
    unmount_detached,
};
pub(crate) use privileges::{
    LIMIT_CORE, LIMIT_FILES, LIMIT_PROCESSES, keep_capabilities, lower_limit, prctl, set_capabilities,
    set_group, set_groups, set_name, set_user, with_file_ids,
};
pub(crate) use start::{
    Given, Gone, Others, Processors, Started, keep_apart, send_elsewhere, take_processors,
};

const AT_HERE: libc::c_long = libc::AT_FDCWD as libc::c_long;
const NULL: *const libc::c_void = std::ptr::null();

/// The arguments of clone3, as the kernel lays them out.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Which side of a clone we are on.
pub(crate) enum Cloned {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// clone3 without shared memory: the child has a copy of everything, and only the calling thread.
pub(crate) fn clone_into(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> Outcome<Cloned> {
    let mut pidfd: RawFd = -1;
    // No handler of ours is the child's. What was ignored would stay so, but the keeper ignores almost nothing.
    const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    let mut arguments = CloneArguments {
        flags: namespaces | libc::CLONE_PIDFD as u64 | CLONE_CLEAR_SIGHAND,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..Default::default()
    };
    if let Some(cgroup) = cgroup {
        // libc's own constant does not fit its type.
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = cgroup.as_raw_fd() as u64;
    }
    match raw!(libc::SYS_clone3, &raw mut arguments, size_of::<CloneArguments>())? {
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel has just made this descriptor for us.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid: pid as i32, pidfd })
        }
    }
}

pub(crate) fn unshare(namespaces: i32) -> Outcome {
    raw!(libc::SYS_unshare, namespaces).map(drop)
}

/// Ends the calling process at once, without any clean-up of the language's.
pub(crate) fn exit(code: i32) -> ! {
    loop {
        let _ = raw!(libc::SYS_exit_group, code);
    }
}

pub(crate) fn read(descriptor: RawFd, buffer: &mut [u8]) -> Outcome<usize> {
    raw!(libc::SYS_read, descriptor, buffer.as_mut_ptr(), buffer.len()).map(|count| count as usize)
}

pub(crate) fn write(descriptor: RawFd, bytes: &[u8]) -> Outcome<usize> {
    raw!(libc::SYS_write, descriptor, bytes.as_ptr(), bytes.len()).map(|count| count as usize)
}

/// Sets an option of a socket that is a number.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> Outcome {
    let socket = socket.as_raw_fd();
    raw!(libc::SYS_setsockopt, socket, level, option, &raw const value, size_of_val(&value)).map(drop)
}

pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Outcome<RawFd> {
    raw!(libc::SYS_openat, AT_HERE, path.as_ptr(), flags | libc::O_CLOEXEC, mode).map(|fd| fd as RawFd)
}

pub(crate) fn close(descriptor: RawFd) -> Outcome {
    raw!(libc::SYS_close, descriptor).map(drop)
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: RawFd) -> Outcome {
    raw!(libc::SYS_close_range, first, u32::MAX, 0).map(drop)
}

/// Makes a descriptor vanish at the next exec.
pub(crate) fn close_on_exec(descriptor: RawFd) -> Outcome {
    raw!(libc::SYS_fcntl, descriptor, libc::F_SETFD, libc::FD_CLOEXEC).map(drop)
}

/// Duplicates onto `to`, which stays open across exec.
pub(crate) fn duplicate_onto(from: RawFd, to: RawFd) -> Outcome {
    if from == to {
        return raw!(libc::SYS_fcntl, from, libc::F_SETFD, 0).map(drop);
    }
    raw!(libc::SYS_dup3, from, to, 0).map(drop)
}

/// Duplicates to a number of at least `least`, closed at exec.
pub(crate) fn duplicate_above(from: RawFd, least: RawFd) -> Outcome<RawFd> {
    raw!(libc::SYS_fcntl, from, libc::F_DUPFD_CLOEXEC, least).map(|fd| fd as RawFd)
}

pub(crate) fn make_directory(path: &CStr, mode: u32) -> Outcome {
    raw!(libc::SYS_mkdirat, AT_HERE, path.as_ptr(), mode).map(drop)
}

pub(crate) fn symlink(target: &CStr, path: &CStr) -> Outcome {
    raw!(libc::SYS_symlinkat, target.as_ptr(), AT_HERE, path.as_ptr()).map(drop)
}

pub(crate) fn change_owner(path: &CStr, uid: u32, gid: u32) -> Outcome {
    raw!(libc::SYS_fchownat, AT_HERE, path.as_ptr(), uid, gid, libc::AT_SYMLINK_NOFOLLOW).map(drop)
}

/// The umask of whoever called must not decide over the modes of new files.
pub(crate) fn set_umask(mask: u32) -> Outcome {
    raw!(libc::SYS_umask, mask).map(drop)
}

/// An empty file to mount on, in one call.
pub(crate) fn make_file(path: &CStr) -> Outcome {
    raw!(libc::SYS_mknodat, AT_HERE, path.as_ptr(), libc::S_IFREG | 0o644, 0).map(drop)
}

pub(crate) fn change_directory(path: &CStr) -> Outcome {
    raw!(libc::SYS_chdir, path.as_ptr()).map(drop)
}

pub(crate) fn pivot_root(new: &CStr, old: &CStr) -> Outcome {
    raw!(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()).map(drop)
}

pub(crate) fn set_host_name(name: &[u8]) -> Outcome {
    raw!(libc::SYS_sethostname, name.as_ptr(), name.len()).map(drop)
}

/// Brings the loopback device of the current network namespace up.
pub(crate) fn raise_loopback() -> Outcome {
    const SIOCSIFFLAGS: libc::c_long = 0x8914;
    let socket = raw!(libc::SYS_socket, libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)?;
    // struct ifreq: 16 bytes of name, then a union of 24 of which the flags are the first two.
    let mut request = [0u8; 40];
    request[..2].copy_from_slice(b"lo");
    request[16..18].copy_from_slice(&((libc::IFF_UP | libc::IFF_RUNNING) as u16).to_ne_bytes());
    let raised = raw!(libc::SYS_ioctl, socket, SIOCSIFFLAGS, request.as_ptr()).map(drop);
    let _ = close(socket as RawFd);
    raised
}

/// The newest Landlock interface that the kernel has, or zero.
#[must_use]
pub(crate) fn landlock_version() -> u32 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    raw!(libc::SYS_landlock_create_ruleset, NULL, 0usize, LANDLOCK_CREATE_RULESET_VERSION)
        .map_or(0, |version| version as u32)
}

/// Gives every signal its default action, except SIGPIPE.
pub(crate) fn reset_signals() {
    // struct sigaction of the kernel: handler, flags, restorer, mask; all zero is SIG_DFL.
    let default = [0u64; 4];
    for signal in (1..=64).filter(|signal| *signal != libc::SIGPIPE) {
        // Two of them have no other action and say so.
        let _ = raw!(libc::SYS_rt_sigaction, signal, default.as_ptr(), NULL, 8usize);
    }
}

/// Unblocks every signal: what the caller blocked is not inherited.
pub(crate) fn unblock_signals() -> Outcome {
    let none = 0u64;
    raw!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const none, NULL, 8usize).map(drop)
}

/// Waits for the process of `pidfd` and takes its status away.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Outcome {
    let mut information = [0u64; 16];
    raw!(libc::SYS_waitid, libc::P_PIDFD, pidfd.as_raw_fd(), information.as_mut_ptr(), libc::WEXITED, NULL)
        .map(drop)
}

/// Kills the process of `pidfd`.
pub(crate) fn kill(pidfd: BorrowedFd<'_>) -> Outcome {
    raw!(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, NULL, 0).map(drop)
}

/// Locks one byte of a file for this open file description, or fails at once.
pub(crate) fn lock_byte(file: &OwnedFd, offset: u64) -> Outcome {
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = offset as libc::off_t;
    lock.l_len = 1;
    raw!(libc::SYS_fcntl, file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock).map(drop)
}

/// Takes ownership of a descriptor that the kernel has just made.
pub(crate) fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: every caller passes the fresh result of a system call that nothing else knows of.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Forks a process that has one thread; none in the child.
pub(crate) fn fork() -> Outcome<Option<i32>> {
    // SAFETY: with one thread no lock is held by another, so the child may go on as any process.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}
