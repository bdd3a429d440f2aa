//! What the supervisor may ask of the kernel. It parses hostile bytes on the owner's side, so this is a strict list
//! of what an asynchronous network program needs, once it runs.
//!
//! What no library of ours would ever try ends the process; the rest is refused with EPERM. The filter comes last:
//! ids, capabilities, no_new_privs and Landlock are settled before. Under it, name resolution through the C library
//! is out of the question, for that asks a cache daemon over a local socket first.

use super::architecture::Architecture;
use super::filter::Filter;
use super::rule::{ALLOW, KILL, Rule, Word, by, by_bits, refuse};
use super::sandbox::{self, NAMESPACES};
use super::socket;

/// The calls that are allowed whatever their arguments.
const ALLOWED: &[&str] = &[
    // Bytes through descriptors, never at a place of its own choosing: what is on record can only be added to.
    "read write readv writev pipe2 dup dup3 close",
    // Files to be read. The old names are those that a static C library uses.
    "open openat openat2 stat lstat fstat newfstatat fstatat statx readlink readlinkat getcwd getdents64 fsync
     fdatasync",
    // The event loop.
    "poll ppoll epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd2 timerfd_create timerfd_settime
     timerfd_gettime",
    // Sockets that were passed in, or that the rule below lets it make.
    "connect bind listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown sendto recvfrom
     sendmsg recvmsg sendmmsg recvmmsg",
    // Memory; making it executable is a matter of arguments, below.
    "munmap mremap brk madvise",
    // Threads, and the handlers that Rust sets for their stacks.
    "exit exit_group futex set_robust_list rseq restart_syscall sched_yield sched_getaffinity getcpu rt_sigaction
     rt_sigprocmask rt_sigreturn sigaltstack",
    // Who it is, the time, randomness. No signal may be sent, not even to itself: where it runs under the owner's
    // uid it could end any of the owner's processes. abort() still ends, by a trap instead of SIGABRT.
    "getpid gettid getuid geteuid getgid getegid uname sysinfo getrlimit time gettimeofday clock_gettime clock_getres
     clock_nanosleep nanosleep getrandom",
];

/// An attempt at any of these is an attack.
const DEADLY: &[&str] = &[
    // Another program, or another process's memory and descriptors.
    "execve execveat ptrace process_vm_readv process_vm_writev pidfd_getfd",
    // Other namespaces, mounts and roots.
    "unshare setns mount umount2 pivot_root chroot mount_setattr open_tree open_tree_attr move_mount fsopen fsconfig
     fsmount fspick",
    // Code in the kernel, and work that passes no filter.
    "bpf kexec_load kexec_file_load init_module finit_module delete_module io_uring_setup io_uring_enter
     io_uring_register",
];

pub(super) fn filter(architecture: Architecture) -> Filter {
    let filter = sandbox::absent(Filter::new(architecture));
    let filter = ALLOWED.iter().fold(filter, |filter, names| filter.rule(names, &ALLOW));
    let filter = DEADLY.iter().fold(filter, |filter, names| filter.rule(names, &KILL));
    filter
        .rule("mmap mprotect", &never_executable())
        .rule("clone", &threads())
        .rule("socket", &socket::in_the_supervisor())
        .rule("socketpair", &socket::pair_in_the_supervisor())
        .rule("fcntl", &descriptor_flags())
        .rule("ioctl", &by(Word::Low(1)).when([libc::FIONBIO as u32], ALLOW).else_refuse())
        .rule("prctl", &names())
        .rule("prlimit64", &reads_only())
        .rule("splice", &nowhere_chosen())
}

fn never_executable() -> Rule {
    by_bits(Word::Low(2), libc::PROT_EXEC.cast_unsigned()).when([0], ALLOW).else_refuse()
}

/// A thread of its own, for blocking work. A new process is refused, new namespaces are deadly.
fn threads() -> Rule {
    const THREAD: u32 = libc::CLONE_THREAD.cast_unsigned();
    let thread = by_bits(Word::Low(0), THREAD).when([THREAD], ALLOW).else_refuse();
    by_bits(Word::Low(0), NAMESPACES).when([0], thread).otherwise(KILL)
}

/// Duplicates, flags and pipe sizes. F_SETOWN and F_SETSIG would send any signal to any process of its uid.
fn descriptor_flags() -> Rule {
    let commands = [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_GETPIPE_SZ,
        libc::F_SETPIPE_SZ,
    ];
    by(Word::Low(1)).when(commands.map(i32::cast_unsigned), ALLOW).else_refuse()
}

/// The names of threads and of memory areas.
fn names() -> Rule {
    let options = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
    by(Word::Low(0)).when(options.map(i32::cast_unsigned), ALLOW).else_refuse()
}

/// No new limit is given: the pointer, in both halves, is null.
fn reads_only() -> Rule {
    let high = by(Word::High(2)).when([0], ALLOW).else_refuse();
    by(Word::Low(2)).when([0], high).otherwise(refuse(libc::EPERM))
}

/// From one end to the other of what the gateway connects, never at a place of its own choosing: neither offset is given,
/// each a pointer in two halves.
fn nowhere_chosen() -> Rule {
    let is_null = |word, then| by(word).when([0], then).else_refuse();
    let to = is_null(Word::Low(3), by(Word::High(3)).when([0], ALLOW).else_refuse());
    is_null(Word::Low(1), is_null(Word::High(1), to))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_call_has_two_rules() {
        let others = ["clone3 mmap mprotect clone socket socketpair fcntl ioctl prctl prlimit64 splice"];
        let names: Vec<&str> =
            ALLOWED.iter().chain(DEADLY).chain(&others).flat_map(|names| names.split_whitespace()).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
    }
}
