//! The rules on arguments, spelled out with the constants of the C library and the errors that programs see.

use jail::seccomp::{Action, Architecture};

use crate::golden::{Subject, ask, cases};

const EPERM: Action = Action::Errno(libc::EPERM as u16);
const HIGH_BITS: u64 = 0xDEAD_BEEF << 32;

// The C libraries disagree on the type of these.
const TCGETS: u64 = libc::TCGETS as u32 as u64;
const TIOCSTI: u64 = libc::TIOCSTI as u32 as u64;
const TIOCLINUX: u64 = libc::TIOCLINUX as u32 as u64;
const TIOCSETD: u64 = libc::TIOCSETD as u32 as u64;
const TIOCGWINSZ: u64 = libc::TIOCGWINSZ as u32 as u64;
const TIOCSCTTY: u64 = libc::TIOCSCTTY as u32 as u64;
const FIONBIO: u64 = libc::FIONBIO as u32 as u64;
const FIONREAD: u64 = libc::FIONREAD as u32 as u64;

/// Asks each machine's filter of a subject about a call with up to six arguments.
#[track_caller]
fn check(subject: Subject, name: &str, arguments: &[u64], expected: Action) {
    for case in cases().into_iter().filter(|case| case.subject == subject) {
        if case.architecture == Architecture::Aarch64 && name == "mknod" {
            continue;
        }
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let found = ask(&case.program(), case.architecture, case.number(name), all);
        assert_eq!(found, expected, "{case:?} {name} {arguments:x?}");
    }
}

#[track_caller]
fn check_socket(subject: Subject, name: &str, socket: (i32, i32, i32), expected: Action) {
    let (family, kind, protocol) = socket;
    let arguments = [family, kind, protocol].map(|value| u64::from(value.cast_unsigned()));
    check(subject, name, &arguments, expected);
    check(subject, name, &arguments.map(|argument| argument | HIGH_BITS), expected);
}

/// Every family and type with every protocol that means something to one of them.
pub(crate) fn sockets() -> impl Iterator<Item = (i32, i32, i32)> {
    let kinds = |family| (0..16).map(move |kind| (family, kind));
    let protocols = |(family, kind)| (0..64).chain([132, 136, 255, 262]).map(move |p| (family, kind, p));
    (0..64).flat_map(kinds).flat_map(protocols)
}

#[test]
fn a_sandbox_has_unix_tcp_udp_and_route_sockets_only() {
    const FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let unsupported = Action::Errno(libc::EAFNOSUPPORT as u16);
    let no_protocol = Action::Errno(libc::EPROTONOSUPPORT as u16);
    for case in cases().into_iter().filter(|case| case.subject != Subject::Supervisor) {
        let (program, number) = (case.program(), case.number("socket"));
        for (family, kind, protocol) in sockets() {
            let expected = match (family, kind, protocol) {
                (libc::AF_UNIX, _, _) => Action::Allow,
                (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Action::Allow,
                (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Action::Allow,
                (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_DGRAM, _) => no_protocol,
                (libc::AF_INET | libc::AF_INET6 | libc::AF_PACKET, _, _) => EPERM,
                (libc::AF_NETLINK, _, libc::NETLINK_ROUTE) => Action::Allow,
                (libc::AF_NETLINK, _, _) => no_protocol,
                _ => unsupported,
            };
            for flags in [0, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC, FLAGS] {
                let arguments = [family, kind | flags, protocol, 0, 0, 0].map(|value| value as u64);
                let found = ask(&program, case.architecture, number, arguments);
                assert_eq!(found, expected, "{case:?} {family} {kind} {protocol}");
            }
        }
    }
    for (subject, name) in
        [Subject::Sandbox, Subject::Nested].into_iter().flat_map(|s| [(s, "socket"), (s, "socketpair")])
    {
        check_socket(subject, name, (libc::AF_UNIX, libc::SOCK_STREAM | FLAGS, 0), Action::Allow);
        check_socket(subject, name, (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP), no_protocol);
        check_socket(subject, name, (libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_ICMPV6), no_protocol);
        check_socket(subject, name, (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP), EPERM);
        check_socket(subject, name, (libc::AF_INET, libc::SOCK_SEQPACKET, libc::IPPROTO_SCTP), EPERM);
        check_socket(subject, name, (libc::AF_VSOCK, libc::SOCK_STREAM, 0), unsupported);
        check_socket(subject, name, (libc::AF_ALG, libc::SOCK_SEQPACKET, 0), unsupported);
    }
}

#[test]
fn the_supervisor_has_tcp_and_udp_sockets_only() {
    let subject = Subject::Supervisor;
    let stream = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    check_socket(subject, "socket", (libc::AF_INET, stream, 0), Action::Allow);
    check_socket(subject, "socket", (libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_UDP), Action::Allow);
    check_socket(subject, "socket", (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_TCP), EPERM);
    check_socket(subject, "socket", (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE), EPERM);
    check_socket(subject, "socket", (libc::AF_UNIX, stream, 0), Action::KillProcess);
    check_socket(subject, "socket", (libc::AF_UNIX, libc::SOCK_DGRAM, 0), Action::KillProcess);
    check_socket(subject, "socketpair", (libc::AF_UNIX, stream, 0), Action::Allow);
    check_socket(subject, "socketpair", (libc::AF_UNIX, libc::SOCK_DGRAM, 0), Action::KillProcess);
    check_socket(subject, "socketpair", (libc::AF_UNIX, libc::SOCK_SEQPACKET, 0), Action::KillProcess);
    check_socket(subject, "socketpair", (libc::AF_INET, stream, 0), EPERM);
}

#[test]
fn terminals_cannot_be_typed_into_whatever_the_high_bits() {
    for subject in [Subject::Sandbox, Subject::Nested] {
        for request in [TIOCSTI, TIOCLINUX, TIOCSETD] {
            check(subject, "ioctl", &[0, request], EPERM);
            check(subject, "ioctl", &[u64::MAX, request | HIGH_BITS], EPERM);
        }
        for request in [TCGETS, TIOCGWINSZ, TIOCSCTTY, FIONBIO, FIONREAD] {
            check(subject, "ioctl", &[0, request], Action::Allow);
        }
    }
    check(Subject::Supervisor, "ioctl", &[0, FIONBIO], Action::Allow);
    check(Subject::Supervisor, "ioctl", &[0, TCGETS], EPERM);
}

#[test]
fn namespaces_are_made_with_nesting_only() {
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let signal = libc::SIGCHLD as u64;
    for namespace in namespaces.map(|flag| u64::from(flag.cast_unsigned())) {
        check(Subject::Sandbox, "clone", &[namespace | signal], EPERM);
        check(Subject::Sandbox, "clone", &[namespace | signal | HIGH_BITS], EPERM);
        check(Subject::Sandbox, "unshare", &[namespace], EPERM);
        check(Subject::Nested, "clone", &[namespace | signal], Action::Allow);
        check(Subject::Nested, "unshare", &[namespace], Action::Allow);
        check(Subject::Supervisor, "clone", &[namespace | libc::CLONE_THREAD as u64], Action::KillProcess);
    }
    check(Subject::Sandbox, "unshare", &[libc::CLONE_NEWTIME as u64], EPERM);
    check(Subject::Sandbox, "unshare", &[libc::CLONE_FILES as u64 | libc::CLONE_FS as u64], Action::Allow);
    check(Subject::Sandbox, "clone", &[signal], Action::Allow);
    // What the C libraries start a thread with, and vfork-like spawning.
    check(Subject::Sandbox, "clone", &[0x3D_0F00], Action::Allow);
    check(Subject::Sandbox, "clone", &[0x4111], Action::Allow);
    check(Subject::Supervisor, "clone", &[0x3D_0F00], Action::Allow);
    check(Subject::Supervisor, "clone", &[0x7D_0F00], Action::Allow);
    check(Subject::Supervisor, "clone", &[signal], EPERM);
}

#[test]
fn execution_domains_are_those_of_debuggers() {
    for subject in [Subject::Sandbox, Subject::Nested] {
        for domain in [0, 0x0008, 0x2_0000, 0x2_0008, 0x4_0000, 0xFFFF_FFFF] {
            check(subject, "personality", &[domain], Action::Allow);
        }
        // READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, other systems.
        for domain in [0x40_0000, 0x10_0000, 0x0001, 0x0004, 0x44_0000, 0xFFFF_FFFE] {
            check(subject, "personality", &[domain], EPERM);
        }
    }
}

#[test]
fn devices_cannot_be_made() {
    for subject in [Subject::Sandbox, Subject::Nested] {
        for kind in [0, libc::S_IFREG, libc::S_IFIFO, libc::S_IFSOCK].map(u64::from) {
            check(subject, "mknod", &[1, kind | 0o644, 0], Action::Allow);
            check(subject, "mknodat", &[1, 1, kind | 0o644, 0], Action::Allow);
        }
        for kind in [libc::S_IFCHR, libc::S_IFBLK, libc::S_IFDIR, libc::S_IFLNK, libc::S_IFMT].map(u64::from)
        {
            check(subject, "mknod", &[1, kind | 0o644, 0], EPERM);
            check(subject, "mknodat", &[1, 1, kind | HIGH_BITS, 0], EPERM);
        }
    }
}

#[test]
fn the_supervisor_gets_no_executable_memory_no_limits_and_no_signals() {
    let subject = Subject::Supervisor;
    let (read, write, execute) = (libc::PROT_READ as u64, libc::PROT_WRITE as u64, libc::PROT_EXEC as u64);
    for name in ["mmap", "mprotect"] {
        check(subject, name, &[0, 4096, read | write], Action::Allow);
        check(subject, name, &[0, 4096, read | execute], EPERM);
        check(subject, name, &[0, 4096, execute | HIGH_BITS], EPERM);
    }
    check(subject, "prlimit64", &[0, 7, 0, 0x7FFF_0000_1000], Action::Allow);
    check(subject, "prlimit64", &[0, 7, 0x7FFF_0000_1000, 0], EPERM);
    check(subject, "prlimit64", &[0, 7, 1 << 32, 0], EPERM);
    check(subject, "splice", &[5, 0, 6, 0, 65536, 3], Action::Allow);
    for (place, offset) in
        [(1, 0x7FFF_0000_1000), (3, 0x7FFF_0000_1000), (1, 1 << 32), (3, 1 << 32), (3, 4096)]
    {
        let mut arguments = [5, 0, 6, 0, 65536, 3];
        arguments[place] = offset;
        check(subject, "splice", &arguments, EPERM);
    }
    check(subject, "fcntl", &[0, libc::F_SETFL as u64, 0], Action::Allow);
    check(subject, "fcntl", &[0, libc::F_SETOWN as u64, 1], EPERM);
    check(subject, "fcntl", &[0, 10, 9], EPERM);
    check(subject, "prctl", &[libc::PR_SET_NAME as u64], Action::Allow);
    check(subject, "prctl", &[libc::PR_SET_DUMPABLE as u64, 1], EPERM);
}
