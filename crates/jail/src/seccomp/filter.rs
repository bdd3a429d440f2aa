//! From rules by name to a program over numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use libc::sock_filter;
use policy::Nesting;

use super::architecture::Architecture;
use super::bpf::{self, Test};
use super::rule::{ALLOW, Action, KILL, Rule, refuse};
use super::{sandbox, socket, supervisor, verdicts};

/// The rules for the system calls of one machine. A number without a call is refused with ENOSYS.
#[derive(Clone, Debug)]
pub struct Filter {
    architecture: Architecture,
    /// What holds for a call without a rule.
    otherwise: Rule,
    rules: BTreeMap<&'static str, Rule>,
}

impl Filter {
    /// The filter that init and everything else in a sandbox runs under.
    #[must_use]
    pub fn for_sandbox(architecture: Architecture, nesting: Nesting) -> Program {
        sandbox::filter(architecture, nesting).compile()
    }

    /// The filter that the supervisor puts on itself before it reads a hostile byte.
    #[must_use]
    pub fn for_supervisor(architecture: Architecture) -> Program {
        supervisor::filter(architecture).compile()
    }

    /// The filter that stands before a kernel of the sandbox's own which speaks TCP itself. That kernel is the wall; this
    /// answers where it would leave programs waiting, and refuses what has no name here as every filter does.
    #[must_use]
    pub fn for_own_stack(architecture: Architecture) -> Program {
        let all = Self { architecture, otherwise: ALLOW, rules: BTreeMap::new() };
        all.rule("socket", &socket::on_its_own_kernel()).compile()
    }

    /// A filter that refuses everything, with EPERM.
    pub(super) fn new(architecture: Architecture) -> Self {
        Self { architecture, otherwise: refuse(libc::EPERM), rules: BTreeMap::new() }
    }

    /// Sets the rule for calls, named with spaces between. A name that this machine does not have stays unused.
    pub(super) fn rule(mut self, names: &'static str, rule: &Rule) -> Self {
        self.rules.extend(names.split_whitespace().map(|name| (name, rule.clone())));
        self
    }

    fn compile(&self) -> Program {
        const NUMBER: u32 = 0;
        const ARCHITECTURE: u32 = 4;
        let leaves: Vec<_> =
            self.rules_by_number().iter().map(|(start, rule)| (*start, rule.compile())).collect();
        let mut native = vec![bpf::load(NUMBER)];
        native.extend(bpf::tree(&leaves));
        let foreign = vec![bpf::conclude(Action::KillProcess)];
        let mut instructions = vec![bpf::load(ARCHITECTURE)];
        instructions.extend(bpf::branch(Test::Equal, &[self.architecture.audit_value()], native, foreign));
        Program { instructions: Cow::Owned(verdicts::share(instructions)) }
    }

    /// Every rule with the number from which on it holds, over all 32 bits; neighbours differ.
    fn rules_by_number(&self) -> Vec<(u32, Rule)> {
        let last = self.architecture.last_number();
        let mut rules: Vec<_> = (0..=last).map(|number| (number, self.rule_for(number))).collect();
        rules.push((last + 1, refuse(libc::ENOSYS)));
        if self.architecture == Architecture::X86_64 {
            // The x32 entries are a second way to most calls, with other layouts. -1 is no call at all: a tracer
            // writes it to have a call skipped, and its process must live on.
            const X32_BIT: u32 = 0x4000_0000;
            rules.push((X32_BIT, KILL));
            rules.push((u32::MAX, refuse(libc::ENOSYS)));
        }
        rules.dedup_by(|next, kept| next.1 == kept.1);
        rules
    }

    fn rule_for(&self, number: u32) -> Rule {
        match self.architecture.name_of(number) {
            Some(name) => self.rules.get(name).unwrap_or(&self.otherwise).clone(),
            None => refuse(libc::ENOSYS),
        }
    }
}

/// A filter in the form that the kernel takes.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: Cow<'static, [sock_filter]>,
}

impl Program {
    /// A program that was compiled before.
    #[must_use]
    pub const fn from_instructions(instructions: &'static [sock_filter]) -> Self {
        Self { instructions: Cow::Borrowed(instructions) }
    }

    /// The instructions.
    #[must_use]
    pub fn instructions(&self) -> &[sock_filter] {
        &self.instructions
    }

    /// The instructions as the kernel reads them, for another process to install.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let one = |step: &sock_filter| {
            let mut bytes = step.code.to_ne_bytes().to_vec();
            bytes.extend([step.jt, step.jf]);
            bytes.extend(step.k.to_ne_bytes());
            bytes
        };
        self.instructions.iter().flat_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_tables_is_a_system_call() {
        let machines = [Architecture::X86_64, Architecture::Aarch64];
        let is_known = |name| {
            machines.iter().any(|machine| {
                (0..=machine.last_number()).any(|number| machine.name_of(number) == Some(name))
            })
        };
        let filters = [
            sandbox::filter(Architecture::X86_64, Nesting::Closed),
            sandbox::filter(Architecture::X86_64, Nesting::Open),
            supervisor::filter(Architecture::X86_64),
        ];
        for name in filters.iter().flat_map(|filter| filter.rules.keys()) {
            assert!(is_known(name), "{name}");
        }
    }
}
