//! The golden files: one verdict for each call that a machine's table names.

use std::collections::HashMap;
use std::path::Path;

use jail::seccomp::{Action, Architecture, Filter, Program, SeccompData, interpret};
use policy::Nesting;

/// Whose filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Sandbox,
    Nested,
    Supervisor,
}

/// A filter and where its golden file is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    pub(crate) architecture: Architecture,
}

/// All six.
pub(crate) fn cases() -> Vec<Case> {
    let subjects = [Subject::Sandbox, Subject::Nested, Subject::Supervisor];
    let machines = [Architecture::X86_64, Architecture::Aarch64];
    subjects
        .into_iter()
        .flat_map(|subject| machines.map(|architecture| Case { subject, architecture }))
        .collect()
}

impl Case {
    pub(crate) fn program(self) -> Program {
        match self.subject {
            Subject::Sandbox => Filter::for_sandbox(self.architecture, Nesting::Closed),
            Subject::Nested => Filter::for_sandbox(self.architecture, Nesting::Open),
            Subject::Supervisor => Filter::for_supervisor(self.architecture),
        }
    }

    /// The golden file: name to verdict.
    pub(crate) fn golden(self) -> HashMap<String, String> {
        let subject = match self.subject {
            Subject::Sandbox => "sandbox",
            Subject::Nested => "nested",
            Subject::Supervisor => "supervisor",
        };
        let machine = match self.architecture {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        };
        let file = format!("golden/syscalls-{subject}-{machine}.txt");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let mut verdicts = HashMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, verdict) = line.split_once(' ').unwrap();
            let earlier = verdicts.insert(name.to_owned(), verdict.to_owned());
            assert_eq!(earlier, None, "{name} stands twice");
        }
        verdicts
    }

    /// The number of a call on this machine.
    pub(crate) fn number(self, name: &str) -> u32 {
        let found =
            (0..=self.architecture.last_number()).find(|n| self.architecture.name_of(*n) == Some(name));
        found.unwrap_or_else(|| panic!("{name} is unknown"))
    }
}

/// What the program says of a call on the machine that it is for.
pub(crate) fn ask(program: &Program, architecture: Architecture, number: u32, arguments: [u64; 6]) -> Action {
    let architecture = architecture.audit_value();
    let data = SeccompData { number, architecture, instruction_pointer: 0, arguments };
    interpret(program.instructions(), &data).unwrap().action
}

/// Values at which some rule turns, alone and with high bits that the kernel does not look at.
pub(crate) fn telling_values() -> Vec<u64> {
    let small = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 58, 132, 262, 1030, 1031, 1032];
    let modes = [0o10644, 0o20600, 0o60600, 0o100644, 0o140600];
    let requests = [0x5412, 0x541C, 0x5421, 0x5423, 0x53564D41];
    let flags = [
        0x80, 0x800, 0x8000, 0x10000, 0x20000, 0x20008, 0x40000, 0x40008, 0x80000, 0x80001, 0x80802,
        0x3D0F00, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x7E020000,
        0x7E020080, 0xFFFFFFFF,
    ];
    let low = small.into_iter().chain(modes).chain(requests).chain(flags);
    low.flat_map(|value| [value, value | 1 << 32, value | 0xFFFF_FFFF << 32]).collect()
}
