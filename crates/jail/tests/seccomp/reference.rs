//! The decision once more, without a tree: the golden file's verdict, and for `args` a plain function of the
//! design. A filter must agree with it on any call whatever.

use std::collections::HashMap;

use jail::seccomp::{Action, Architecture};
use proptest::prelude::*;
use proptest::sample::select;

use crate::golden::{Case, Subject, ask, cases, telling_values};

const EPERM: Action = Action::Errno(libc::EPERM as u16);
const ENOSYS: Action = Action::Errno(libc::ENOSYS as u16);
const EAFNOSUPPORT: Action = Action::Errno(libc::EAFNOSUPPORT as u16);
const EPROTONOSUPPORT: Action = Action::Errno(libc::EPROTONOSUPPORT as u16);

const NAMESPACES: i32 = 0x7E02_0000;

fn allow_if(condition: bool) -> Action {
    if condition { Action::Allow } else { EPERM }
}

fn expected(case: Case, golden: &HashMap<String, String>, number: u32, arguments: [u64; 6]) -> Action {
    if case.architecture == Architecture::X86_64 && number >= 0x4000_0000 && number != u32::MAX {
        return Action::KillProcess;
    }
    let Some(name) = case.architecture.name_of(number) else { return ENOSYS };
    match golden[name].as_str() {
        "allow" => Action::Allow,
        "eperm" => EPERM,
        "enosys" => ENOSYS,
        "kill" => Action::KillProcess,
        "args" if case.subject == Subject::Supervisor => in_the_supervisor(name, arguments),
        "args" => in_a_sandbox(name, arguments),
        other => panic!("{other} is no verdict"),
    }
}

fn in_a_sandbox(name: &str, arguments: [u64; 6]) -> Action {
    let ints = arguments.map(|argument| argument as i32);
    match name {
        "clone" => allow_if(ints[0] & NAMESPACES == 0),
        "unshare" => allow_if(ints[0] & (NAMESPACES | 0x80) == 0),
        "ioctl" => allow_if(![0x5412, 0x541C, 0x5423].contains(&ints[1])),
        "personality" => allow_if([0, 8, 0x20000, 0x20008, 0x40000, -1].contains(&ints[0])),
        "mknod" => allow_if(!is_device(ints[1])),
        "mknodat" => allow_if(!is_device(ints[2])),
        "socket" | "socketpair" => match ints[0] {
            1 => Action::Allow,
            2 | 10 => internet(ints),
            16 if ints[2] == 0 => Action::Allow,
            16 => EPROTONOSUPPORT,
            17 => EPERM,
            _ => EAFNOSUPPORT,
        },
        _ => panic!("{name} has no rule"),
    }
}

fn in_the_supervisor(name: &str, arguments: [u64; 6]) -> Action {
    let ints = arguments.map(|argument| argument as i32);
    let kind = ints[1] & !0o2_004_000;
    match name {
        "mmap" | "mprotect" => allow_if(ints[2] & 4 == 0),
        "clone" if ints[0] & NAMESPACES != 0 => Action::KillProcess,
        "clone" => allow_if(ints[0] & 0x10000 != 0),
        "socketpair" if ints[0] == 1 && kind == 1 => Action::Allow,
        "socket" | "socketpair" if ints[0] == 1 => Action::KillProcess,
        "socket" if ints[0] == 2 || ints[0] == 10 => internet(ints),
        "socket" | "socketpair" => EPERM,
        "fcntl" => allow_if([0, 1, 2, 3, 4, 1030, 1031, 1032].contains(&ints[1])),
        "ioctl" => allow_if(ints[1] == 0x5421),
        "prctl" => allow_if([15, 16, 0x5356_4D41].contains(&ints[0])),
        "prlimit64" => allow_if(arguments[2] == 0),
        "splice" => allow_if(arguments[1] == 0 && arguments[3] == 0),
        _ => panic!("{name} has no rule"),
    }
}

/// A file type other than none, plain, fifo or socket.
fn is_device(mode: i32) -> bool {
    !matches!(mode & 0o170_000, 0 | 0o100_000 | 0o010_000 | 0o140_000)
}

/// TCP and UDP.
fn internet(arguments: [i32; 6]) -> Action {
    match (arguments[1] & !0o2_004_000, arguments[2]) {
        (1, 0 | 6) | (2, 0 | 17) => Action::Allow,
        (1 | 2, _) => EPROTONOSUPPORT,
        _ => EPERM,
    }
}

fn any_number() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..500u32, 1 => 0x4000_0000..0x4000_0400u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn any_argument() -> impl Strategy<Value = u64> {
    prop_oneof![4 => select(telling_values()), 1 => any::<u64>(), 1 => 0..64u64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn any_call_is_decided_as_the_design_says(
        calls in proptest::collection::vec((any_number(), proptest::array::uniform6(any_argument())), 1000)
    ) {
        for case in cases() {
            let (program, golden) = (case.program(), case.golden());
            for (number, arguments) in &calls {
                let found = ask(&program, case.architecture, *number, *arguments);
                prop_assert_eq!(
                    found, expected(case, &golden, *number, *arguments), "{:?} {} {:x?}", case, number, arguments
                );
            }
        }
    }
}

#[test]
fn every_rule_on_arguments_is_decided_as_the_design_says() {
    for case in cases() {
        let (program, golden) = (case.program(), case.golden());
        let inspected: Vec<_> =
            golden.iter().filter(|(_, verdict)| *verdict == "args").map(|(name, _)| name).collect();
        for name in inspected {
            let number = case.number(name);
            for arguments in telling_arguments() {
                let found = ask(&program, case.architecture, number, arguments);
                let wanted = expected(case, &golden, number, arguments);
                assert_eq!(found, wanted, "{case:?} {name} {arguments:x?}");
            }
        }
    }
}

/// Every telling value in each of the first three places, and all triples of small ones.
fn telling_arguments() -> Vec<[u64; 6]> {
    let all = telling_values();
    let alone = all
        .iter()
        .flat_map(|&value| [[value, 0, 0, 0, 0, 0], [0, value, 0, 0, 0, 0], [0, 0, value, 0, 0, 0]]);
    let small: Vec<u64> = all.iter().copied().filter(|value| *value < 64).collect();
    let triples = small
        .iter()
        .flat_map(|first| small.iter().map(move |second| (*first, *second)))
        .flat_map(|(first, second)| small.iter().map(move |third| [first, second, *third, 0, 0, 0]));
    alone.chain(triples).collect()
}
