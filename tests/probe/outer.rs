//! Stands for a machine that lacks something, and becomes another program: a filter that answers some calls with an
//! error, or a user namespace in which there may be no namespace of some kind.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use jail::seccomp::Architecture;

use crate::sys::{call, fork};

/// `answers` is `call=ERRNO`, separated by commas.
pub(crate) fn run(answers: &str, command: &[&str]) -> ExitCode {
    let answers: Vec<(u32, i32)> = answers.split(',').map(parse).collect();
    install(&answers);
    become_program(command)
}

/// `kind` is one of the kernel's names for the limits on namespaces: user, mnt, pid, net, ipc, uts, cgroup. Only root
/// can do this: in the new user namespace every id stays what it is.
pub(crate) fn run_without(kind: &str, command: &[&str]) -> ExitCode {
    enter_same_ids();
    let limit = format!("/proc/sys/user/max_{kind}_namespaces");
    std::fs::write(&limit, "0").unwrap_or_else(|error| panic!("{limit}: {error}"));
    become_program(command)
}

/// No rules for packets can be made: the sockets for that are refused as by a kernel that has none.
pub(crate) fn run_without_netfilter(command: &[&str]) -> ExitCode {
    let number = parse("socket=EPERM").0;
    let load = |at: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    let other = |k: u32, past: u8| {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        libc::sock_filter { code, jt: 0, jf: past, k }
    };
    // The number of the call, its family and its protocol, each in the low half of what the kernel shows.
    const ARGUMENTS: u32 = 16;
    set(&mut [
        load(0),
        other(number, 5),
        load(ARGUMENTS),
        other(libc::AF_NETLINK as u32, 3),
        load(ARGUMENTS + 16),
        other(libc::NETLINK_NETFILTER as u32, 1),
        give(libc::SECCOMP_RET_ERRNO | libc::EPROTONOSUPPORT as u32),
        give(libc::SECCOMP_RET_ALLOW),
    ]);
    become_program(command)
}

fn become_program(command: &[&str]) -> ExitCode {
    let error = Command::new(command[0]).args(&command[1..]).exec();
    eprintln!("probe: {}: {error}", command[0]);
    ExitCode::from(2)
}

/// New user and mount namespaces with a map of every id to itself. Only a process that stays outside may write it.
fn enter_same_ids() {
    let parent = std::process::id();
    let (mut inside, mut outside) = std::os::unix::net::UnixStream::pair().unwrap();
    let write = move || {
        outside.read_exact(&mut [0]).unwrap();
        for file in ["gid_map", "uid_map"] {
            std::fs::write(format!("/proc/{parent}/{file}"), "0 0 4294967295").unwrap();
        }
        outside.write_all(b"!").unwrap();
    };
    fork(write);
    let namespaces = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;
    call(libc::SYS_unshare, &[namespaces]).unwrap();
    inside.write_all(b"!").unwrap();
    inside.read_exact(&mut [0]).unwrap();
}

fn parse(answer: &str) -> (u32, i32) {
    let (name, errno) = answer.split_once('=').expect("call=ERRNO");
    let number = (0..=Architecture::NATIVE.last_number())
        .find(|number| Architecture::NATIVE.name_of(*number) == Some(name))
        .unwrap_or_else(|| panic!("no call is named {name}"));
    let errno = match errno {
        "ENOSYS" => libc::ENOSYS,
        "EPERM" => libc::EPERM,
        "EACCES" => libc::EACCES,
        "EOPNOTSUPP" => libc::EOPNOTSUPP,
        _ => panic!("no error is named {errno}"),
    };
    (number, errno)
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn give(action: u32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

fn install(answers: &[(u32, i32)]) {
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (number, errno) in answers {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        program.push(libc::sock_filter { code, jt: 0, jf: 1, k: *number });
        program.push(give(libc::SECCOMP_RET_ERRNO | *errno as u32));
    }
    program.push(give(libc::SECCOMP_RET_ALLOW));
    set(&mut program);
}

fn set(program: &mut [libc::sock_filter]) {
    let described = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let set = || {
        let arguments = [libc::SECCOMP_SET_MODE_FILTER as usize, 0, (&raw const described) as usize];
        call(libc::SYS_seccomp, &arguments)
    };
    // With a capability there is no need for no_new_privs, which would take newuidmap's powers away as well.
    if set().is_err() {
        call(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0]).unwrap();
        set().unwrap();
    }
}
