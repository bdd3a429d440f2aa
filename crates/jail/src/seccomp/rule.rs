//! What a filter decides: a verdict at once, or one that hangs on words among the arguments.

use super::bpf::{self, Block, Test};

/// What the kernel does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Lets it through.
    Allow,
    /// Answers with this error number; the call does not run.
    Errno(u16),
    /// Ends the whole process with SIGSYS.
    KillProcess,
    /// Any other answer, as the kernel spells it. No filter of ours gives one.
    Other(u32),
}

impl Action {
    /// As the value that a filter returns.
    pub(super) fn encode(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Errno(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
            Self::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Other(value) => value,
        }
    }

    /// From the value that a filter returned.
    pub(super) fn decode(value: u32) -> Self {
        match value & libc::SECCOMP_RET_ACTION_FULL {
            libc::SECCOMP_RET_ALLOW => Self::Allow,
            libc::SECCOMP_RET_ERRNO => Self::Errno((value & libc::SECCOMP_RET_DATA) as u16),
            libc::SECCOMP_RET_KILL_PROCESS => Self::KillProcess,
            _ => Self::Other(value),
        }
    }
}

/// Half of an argument: a filter compares 32 bits at a time. Where the kernel takes an `int` it looks at the low
/// half alone, and so must the rule, or set high bits would slip a refused value past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Low(u8),
    High(u8),
}

impl Word {
    /// Where it lies in the kernel's description of a call. Both machines are little-endian.
    fn offset(self) -> u32 {
        const ARGUMENTS: u32 = 16;
        match self {
            Self::Low(index) => ARGUMENTS + 8 * u32::from(index),
            Self::High(index) => ARGUMENTS + 8 * u32::from(index) + 4,
        }
    }
}

/// The decision on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Always(Action),
    ByArgument(Inspection),
}

/// Goes by the value of one word under a mask: the first case that holds it decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inspection {
    word: Word,
    mask: u32,
    cases: Vec<(Vec<u32>, Rule)>,
    otherwise: Box<Rule>,
}

pub(super) const ALLOW: Rule = Rule::Always(Action::Allow);
pub(super) const KILL: Rule = Rule::Always(Action::KillProcess);

/// Answers with an error number.
pub(super) const fn refuse(errno: i32) -> Rule {
    Rule::Always(Action::Errno(errno as u16))
}

/// A decision by a whole word. Until told otherwise every value is refused.
pub(super) fn by(word: Word) -> Inspection {
    by_bits(word, u32::MAX)
}

/// A decision by some bits of a word. Until told otherwise every value is refused.
pub(super) fn by_bits(word: Word, mask: u32) -> Inspection {
    Inspection { word, mask, cases: Vec::new(), otherwise: Box::new(refuse(libc::EPERM)) }
}

impl Inspection {
    /// What happens for these values.
    pub(super) fn when(mut self, values: impl Into<Vec<u32>>, rule: Rule) -> Self {
        self.cases.push((values.into(), rule));
        self
    }

    /// What happens for every other value.
    pub(super) fn otherwise(mut self, rule: Rule) -> Rule {
        self.otherwise = Box::new(rule);
        Rule::ByArgument(self)
    }

    /// Every other value is refused with EPERM.
    pub(super) fn else_refuse(self) -> Rule {
        Rule::ByArgument(self)
    }
}

impl Rule {
    /// The instructions that come to this decision.
    pub(super) fn compile(&self) -> Block {
        match self {
            Self::Always(action) => vec![bpf::conclude(*action)],
            Self::ByArgument(inspection) => inspection.compile(),
        }
    }
}

impl Inspection {
    fn compile(&self) -> Block {
        let mut block = vec![bpf::load(self.word.offset())];
        if self.mask != u32::MAX {
            block.push(bpf::and(self.mask));
        }
        let cases = self.cases.iter().rev();
        block.extend(cases.fold(self.otherwise.compile(), |no, (values, rule)| {
            bpf::branch(Test::Equal, values, rule.compile(), no)
        }));
        block
    }
}
