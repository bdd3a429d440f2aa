//! What a process in a sandbox may ask of the kernel. Everything that is not named here is refused with EPERM.
//!
//! The other walls (namespaces, ids, no capability, no_new_privs, Landlock) already make most calls harmless. This
//! one takes away what still leads to large or young parts of the kernel that a development tool does without.

use policy::Nesting;

use super::architecture::Architecture;
use super::filter::Filter;
use super::rule::{ALLOW, Rule, Word, by, by_bits, refuse};
use super::socket;

/// The calls that are allowed whatever their arguments.
const ALLOWED: &[&str] = &[
    // Bytes through a descriptor that the process holds already.
    "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile splice tee vmsplice
     copy_file_range fsync fdatasync sync syncfs sync_file_range truncate ftruncate fallocate fadvise64 readahead
     cachestat",
    // Descriptors themselves.
    "close close_range dup dup2 dup3 fcntl flock pipe pipe2",
    // Files by name. Mounts, ids and Landlock decide which; set-id bits gain nothing on nosuid mounts under
    // no_new_privs. File handles can be made, for they tell mounts apart, but not opened: that would lead around
    // the mounts.
    "open openat openat2 creat stat lstat fstat newfstatat fstatat statx access faccessat faccessat2 readlink
     readlinkat getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2
     link linkat symlink symlinkat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes
     futimesat utimensat umask statfs fstatfs name_to_handle_at",
    // Attributes of files; the last two do what ioctl does on an open file.
    "setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr
     listxattrat removexattr lremovexattr fremovexattr removexattrat file_getattr file_setattr",
    // The mounts of one's own namespace, to look at.
    "statmount listmount",
    // Build tools and editors watch files.
    "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
    // Waiting.
    "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
     eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime",
    // Databases use the old asynchronous I/O. io_uring is not here: what its queues carry passes no filter.
    "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents",
    // One's own memory, also executable: node, the JVM and every other just-in-time compiler need that.
    "mmap mprotect munmap mremap brk madvise mincore msync mlock mlock2 munlock mlockall munlockall remap_file_pages
     memfd_create memfd_secret pkey_alloc pkey_free pkey_mprotect mseal map_shadow_stack membarrier",
    // Advice on the memory of processes that one may trace.
    "process_madvise process_mrelease",
    // The JVM and numactl place their own pages.
    "get_mempolicy set_mempolicy set_mempolicy_home_node mbind",
    // Processes and threads. New namespaces are a matter of arguments, below.
    "fork vfork execve execveat exit exit_group wait4 waitid pidfd_open set_tid_address set_robust_list
     get_robust_list rseq futex futex_waitv futex_wake futex_wait futex_requeue restart_syscall",
    // Signals, which end at the process namespace.
    "kill tkill tgkill pidfd_send_signal rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait
     rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack pause alarm getitimer setitimer",
    // gdb and strace among one's own. The kernel refuses them on init, which is not dumpable.
    "ptrace process_vm_readv process_vm_writev",
    // Who one is, and on what.
    "getpid getppid gettid getpgid getpgrp setpgid getsid setsid getuid geteuid getgid getegid getresuid getresgid
     getgroups uname sysinfo times getrusage getcpu",
    // Init drops to the agent's ids under this filter; without a capability these can do no more than that.
    "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset",
    // Limits and scheduling, which need a capability to be raised, and the settings of a thread. No option of prctl
    // is refused: each either concerns the caller alone or asks for a capability.
    "getrlimit setrlimit prlimit64 getpriority setpriority ioprio_get ioprio_set sched_yield sched_getaffinity
     sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_getattr
     sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval prctl arch_prctl",
    // Tools may lock themselves in further. No filter beneath ours, nor a listener behind one, can soften it: the
    // kernel takes the strictest answer of all.
    "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self lsm_get_self_attr lsm_list_modules",
    // Clocks to read, timers, randomness.
    "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep timer_create timer_settime timer_gettime
     timer_getoverrun timer_delete getrandom",
    // Sockets once they exist; which ones may is a matter of arguments, below.
    "connect bind listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown sendto recvfrom
     sendmsg recvmsg sendmmsg recvmmsg",
    // The IPC namespace is the sandbox's own.
    "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink
     mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
];

/// What a tool that sandboxes itself (bwrap, Chromium, nix) needs besides user namespaces. Its mounts happen in
/// namespaces of its own making, where the kernel keeps the sandbox's mounts locked.
const NESTING: &str =
    "clone unshare setns mount umount2 pivot_root chroot mount_setattr open_tree open_tree_attr
     move_mount fsopen fsconfig fsmount fspick sethostname setdomainname";

/// Numbers that stand in the table, yet no program calls: the entries of 32-bit machines, and those of the kernel's
/// own trampolines.
const ABSENT: &str = "clock_gettime64 clock_settime64 clock_adjtime64 clock_getres_time64 clock_nanosleep_time64
     timer_gettime64 timer_settime64 timerfd_gettime64 timerfd_settime64 utimensat_time64 pselect6_time64
     ppoll_time64 io_pgetevents_time64 recvmmsg_time64 mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64
     rt_sigtimedwait_time64 futex_time64 sched_rr_get_interval_time64 uretprobe uprobe";

/// The namespaces that clone and unshare can make. CLONE_NEWTIME is one of the bits in which clone keeps the exit
/// signal, so it means a namespace to unshare alone.
pub(super) const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();
const TIME_NAMESPACE: u32 = libc::CLONE_NEWTIME.cast_unsigned();

pub(super) fn filter(architecture: Architecture, nesting: Nesting) -> Filter {
    let filter = allowed(absent(Filter::new(architecture)))
        .rule("ioctl", &terminals_stay_honest())
        .rule("socket socketpair", &socket::in_a_sandbox())
        .rule("personality", &address_layout())
        .rule("mknod", &no_devices(Word::Low(1)))
        .rule("mknodat", &no_devices(Word::Low(2)));
    match nesting {
        Nesting::Open => filter.rule(NESTING, &ALLOW),
        Nesting::Closed => filter
            .rule("clone", &without_any_of(Word::Low(0), NAMESPACES))
            .rule("unshare", &without_any_of(Word::Low(0), NAMESPACES | TIME_NAMESPACE)),
    }
}

/// clone3 keeps its flags behind a pointer. At ENOSYS every libc falls back to clone, whose flags can be read.
pub(super) fn absent(filter: Filter) -> Filter {
    filter.rule(ABSENT, &refuse(libc::ENOSYS)).rule("clone3", &refuse(libc::ENOSYS))
}

fn allowed(filter: Filter) -> Filter {
    ALLOWED.iter().fold(filter, |filter, names| filter.rule(names, &ALLOW))
}

/// Any ioctl but those that type into a terminal (TIOCSTI, and the paste of TIOCLINUX) or load a line discipline.
fn terminals_stay_honest() -> Rule {
    let refused = [libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32];
    by(Word::Low(1)).when(refused, refuse(libc::EPERM)).otherwise(ALLOW)
}

/// A query, the default, ASLR off (gdb, `setarch -R`), and the 32-bit and old-version faces of uname. Others switch
/// to execution domains with weaker protections.
fn address_layout() -> Rule {
    const LINUX: u32 = 0;
    const LINUX32: u32 = 0x0008;
    const UNAME26: u32 = 0x0002_0000;
    const NO_RANDOMIZATION: u32 = 0x0004_0000;
    const QUERY: u32 = u32::MAX;
    by(Word::Low(0))
        .when([LINUX, LINUX32, UNAME26, UNAME26 | LINUX32, NO_RANDOMIZATION, QUERY], ALLOW)
        .else_refuse()
}

/// Plain files (also spelled as no type at all), fifos and sockets.
fn no_devices(mode: Word) -> Rule {
    by_bits(mode, libc::S_IFMT).when([0, libc::S_IFREG, libc::S_IFIFO, libc::S_IFSOCK], ALLOW).else_refuse()
}

fn without_any_of(flags: Word, bits: u32) -> Rule {
    by_bits(flags, bits).when([0], ALLOW).else_refuse()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_call_has_two_rules() {
        let others = [ABSENT, NESTING, "clone3 ioctl socket socketpair personality mknod mknodat"];
        let names: Vec<&str> =
            ALLOWED.iter().chain(&others).flat_map(|names| names.split_whitespace()).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
    }
}
