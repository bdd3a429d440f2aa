//! Every number, on every machine, for every subject.

use std::collections::{BTreeSet, HashSet};

use jail::seccomp::{Action, Architecture, Program, SeccompData, interpret};

use crate::golden::{Case, ask, cases, telling_values};

/// What the program does with a call, whatever its arguments: a word of the golden files.
fn verdict(program: &Program, architecture: Architecture, number: u32) -> &'static str {
    let mut seen = HashSet::new();
    for value in telling_values() {
        for position in 0..6 {
            let mut arguments = [0; 6];
            arguments[position] = value;
            seen.insert(ask(program, architecture, number, arguments));
        }
    }
    let seen: Vec<Action> = seen.into_iter().collect();
    match seen[..] {
        [Action::Allow] => "allow",
        [Action::KillProcess] => "kill",
        [Action::Errno(errno)] if i32::from(errno) == libc::EPERM => "eperm",
        [Action::Errno(errno)] if i32::from(errno) == libc::ENOSYS => "enosys",
        [_] => "something else",
        _ => "args",
    }
}

#[test]
fn every_number_is_as_the_golden_file_says() {
    for case in cases() {
        let (program, golden) = (case.program(), case.golden());
        let mut wrong = Vec::new();
        for number in 0..=1023 {
            let name = case.architecture.name_of(number);
            let expected = name.map_or("enosys", |name| golden.get(name).map_or("missing", String::as_str));
            let found = verdict(&program, case.architecture, number);
            if found != expected {
                wrong.push(format!("{number} {name:?}: {found}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{case:?}: {wrong:#?}");
    }
}

#[test]
fn the_golden_files_name_exactly_the_known_calls() {
    for case in cases() {
        let known: BTreeSet<_> =
            (0..=1023).filter_map(|number| case.architecture.name_of(number)).map(str::to_owned).collect();
        let named: BTreeSet<_> = case.golden().into_keys().collect();
        assert_eq!(named, known, "{case:?}");
    }
}

#[test]
fn the_x32_entries_are_deadly_and_minus_one_is_no_call() {
    for case in cases() {
        let program = case.program();
        let high = (0..=1023).map(|number| 0x4000_0000 | number).chain([
            0x4000_0400,
            0x7FFF_FFFF,
            0x8000_0000,
            0xC000_0000,
            0xFFFF_FFFE,
        ]);
        let expected = match case.architecture {
            Architecture::X86_64 => "kill",
            Architecture::Aarch64 => "enosys",
        };
        for number in high {
            assert_eq!(verdict(&program, case.architecture, number), expected, "{case:?} {number:#x}");
        }
        assert_eq!(verdict(&program, case.architecture, u32::MAX), "enosys", "{case:?}");
        assert_eq!(verdict(&program, case.architecture, 0x3FFF_FFFF), "enosys", "{case:?}");
    }
}

#[test]
fn every_other_machine_is_deadly() {
    // i386, ARM, big-endian ARM64, 64-bit RISC-V, x86_64 and ARM64 without their marks, and each for the other.
    let machines = [
        0x4000_0003,
        0x4000_0028,
        0x8000_00B7,
        0xC000_00F3,
        0x3E,
        0xB7,
        0,
        u32::MAX,
        0xC000_003E,
        0xC000_00B7,
    ];
    for case in cases() {
        let program = case.program();
        for architecture in machines.into_iter().filter(|value| *value != case.architecture.audit_value()) {
            for number in (0..=1023).chain([0x4000_0000, u32::MAX]) {
                let data =
                    SeccompData { number, architecture, instruction_pointer: 0, arguments: [u64::MAX; 6] };
                let run = interpret(program.instructions(), &data).unwrap();
                assert_eq!(run.action, Action::KillProcess, "{case:?} {architecture:#x} {number}");
            }
        }
    }
}

/// The most instructions that any call takes.
fn longest_path(case: Case, program: &Program) -> usize {
    let architecture = case.architecture.audit_value();
    let mut longest = 0;
    for number in (0..=1023).chain([0x4000_0000, u32::MAX]) {
        for value in telling_values() {
            for position in 0..6 {
                // The longest rule is that of internet sockets.
                let mut arguments = [u64::from(libc::AF_INET6.cast_unsigned()); 6];
                arguments[position] = value;
                let data = SeccompData { number, architecture, instruction_pointer: 0, arguments };
                longest = longest.max(interpret(program.instructions(), &data).unwrap().steps);
            }
        }
    }
    longest
}

#[test]
fn a_verdict_takes_few_instructions() {
    for case in cases() {
        let program = case.program();
        let (length, longest) = (program.instructions().len(), longest_path(case, &program));
        println!("{case:?}: {length} instructions, {longest} on the longest path");
        assert!(longest < 40, "{case:?}: {longest}");
        assert!(length < 500, "{case:?}: {length}");
    }
}
