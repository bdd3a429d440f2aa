//! What a process in a sandbox sees of its filter.

use std::collections::HashMap;

use jail::seccomp::{Architecture, Filter, Program};
use policy::Nesting;

use crate::sys::{Ended, call, under};

fn sandbox() -> Program {
    Filter::for_sandbox(Architecture::NATIVE, Nesting::Closed)
}

fn golden(subject: &str) -> HashMap<String, String> {
    let machine = std::env::consts::ARCH;
    let file = format!("{}/golden/syscalls-{subject}-{machine}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

#[test]
fn refused_and_unknown_numbers_are_answered_as_the_golden_file_says() {
    let supervisor = Filter::for_supervisor(Architecture::NATIVE);
    for (subject, program) in [("sandbox", sandbox()), ("supervisor", supervisor)] {
        let golden = golden(subject);
        for number in 0..=1023u32 {
            let name = Architecture::NATIVE.name_of(number);
            // The kernel's trampolines use these, and since 6.14 it asks no filter about them.
            if let Some("uretprobe" | "uprobe") = name {
                continue;
            }
            let expected = match name.map_or("enosys", |name| golden[name].as_str()) {
                "eperm" => Ended::Code(libc::EPERM),
                "enosys" => Ended::Code(libc::ENOSYS),
                "kill" => Ended::Signal(libc::SIGSYS),
                _ => continue,
            };
            let ended = under(&program, || call(number.into(), [0; 6]));
            assert_eq!(ended, expected, "{subject} {number} {name:?}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_c_library() {
    let names = [
        (libc::SYS_clone, "clone"),
        (libc::SYS_clone3, "clone3"),
        (libc::SYS_unshare, "unshare"),
        (libc::SYS_execve, "execve"),
        (libc::SYS_ioctl, "ioctl"),
        (libc::SYS_socket, "socket"),
        (libc::SYS_mknodat, "mknodat"),
        (libc::SYS_mount, "mount"),
        (libc::SYS_bpf, "bpf"),
        (libc::SYS_seccomp, "seccomp"),
    ];
    for (number, name) in names {
        assert_eq!(Architecture::NATIVE.name_of(number as u32), Some(name));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_other_entries_of_the_machine_are_deadly() {
    use crate::sys::{fork, getpid_by_int80};
    const X32_GETPID: i64 = 0x4000_0000 | libc::SYS_getpid;
    let program = sandbox();
    assert_eq!(under(&program, || call(X32_GETPID, [0; 6])), Ended::Signal(libc::SIGSYS));
    // Without 32-bit support in the kernel the instruction faults by itself.
    let without_filter = fork(|| i32::from(getpid_by_int80() <= 0));
    let expected = if without_filter == Ended::Code(0) { libc::SIGSYS } else { libc::SIGSEGV };
    assert_eq!(under(&program, || i32::from(getpid_by_int80() <= 0)), Ended::Signal(expected));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_tracer_can_have_a_call_skipped() {
    use crate::sys::skip_a_call_and_answer;
    assert_eq!(under(&sandbox(), || call(-1, [0; 6])), Ended::Code(libc::ENOSYS));
    assert_eq!(skip_a_call_and_answer(&sandbox(), 42), Ended::Code(42));
}

/// Makes a call in a sandbox: zero or the error number.
fn result_of(number: i64, arguments: &[u64]) -> i32 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    match under(&sandbox(), || call(number, all)) {
        Ended::Code(code) => code,
        Ended::Signal(signal) => -signal,
    }
}

#[test]
fn terminals_and_namespaces_are_refused() {
    const HIGH_BITS: u64 = 0xFFFF_FFFF << 32;
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD].map(|request| request as u32) {
        assert_eq!(result_of(libc::SYS_ioctl, &[0, request.into()]), libc::EPERM);
        assert_eq!(result_of(libc::SYS_ioctl, &[0, u64::from(request) | HIGH_BITS]), libc::EPERM);
    }
    let (user, signal) = (libc::CLONE_NEWUSER as u64, libc::SIGCHLD as u64);
    assert_eq!(result_of(libc::SYS_unshare, &[user]), libc::EPERM);
    assert_eq!(result_of(libc::SYS_clone, &[user | signal]), libc::EPERM);
    assert_eq!(result_of(libc::SYS_clone, &[user | signal | HIGH_BITS]), libc::EPERM);
    assert_eq!(result_of(libc::SYS_clone3, &[]), libc::ENOSYS);
    const READ_IMPLIES_EXEC: u64 = 0x40_0000;
    const ADDR_NO_RANDOMIZE: u64 = 0x4_0000;
    assert_eq!(result_of(libc::SYS_personality, &[READ_IMPLIES_EXEC]), libc::EPERM);
    assert_eq!(result_of(libc::SYS_personality, &[ADDR_NO_RANDOMIZE]), 0);
}

#[test]
fn sockets_are_those_of_the_design() {
    let socket = |family: i32, kind: i32, protocol: i32| {
        result_of(libc::SYS_socket, &[family, kind, protocol].map(|value| value as u64))
    };
    assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0), 0);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP), 0);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0), 0);
    assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE), 0);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP), libc::EPROTONOSUPPORT);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP), libc::EPROTONOSUPPORT);
    assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT), libc::EPROTONOSUPPORT);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP), libc::EPERM);
    assert_eq!(socket(libc::AF_PACKET, libc::SOCK_RAW, 0), libc::EPERM);
    assert_eq!(socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0), libc::EAFNOSUPPORT);
}
