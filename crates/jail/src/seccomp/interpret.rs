//! Runs a filter as the kernel would, so that a test can ask it about any call, also one dumped from a live process.

use libc::sock_filter;

use super::bpf;
use super::rule::Action;

/// The kernel's description of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeccompData {
    /// The number of the call.
    pub number: u32,
    /// The machine, as [`Architecture::audit_value`](super::Architecture::audit_value) names it.
    pub architecture: u32,
    /// Where the call was made.
    pub instruction_pointer: u64,
    /// The arguments, as they are in the registers.
    pub arguments: [u64; 6],
}

/// What a filter said of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The verdict.
    pub action: Action,
    /// How many instructions it took.
    pub steps: usize,
}

/// Why a program is not a filter that this interpreter can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An instruction that no filter of ours has.
    #[error("instruction {at} has the unknown code {code:#x}")]
    Instruction {
        /// Its index.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// A load from a place that is not a word of the description.
    #[error("instruction {at} loads from offset {offset}")]
    Offset {
        /// Its index.
        at: usize,
        /// Where it wants to load from.
        offset: u32,
    },
    /// A path that ends without a verdict.
    #[error("the program runs past its end")]
    End,
}

/// Runs a filter over one call.
///
/// # Errors
/// [`Malformed`] if the program does what no filter of ours does.
pub fn interpret(program: &[sock_filter], data: &SeccompData) -> Result<Run, Malformed> {
    let mut accumulator = 0;
    let mut at = 0;
    let mut steps = 0;
    loop {
        let instruction = program.get(at).ok_or(Malformed::End)?;
        let k = instruction.k;
        let jump = |taken: bool| usize::from(if taken { instruction.jt } else { instruction.jf });
        let skipped = match instruction.code {
            bpf::RETURN => return Ok(Run { action: Action::decode(k), steps: steps + 1 }),
            bpf::LOAD_WORD => {
                accumulator = data.word(k).ok_or(Malformed::Offset { at, offset: k })?;
                0
            }
            bpf::AND => {
                accumulator &= k;
                0
            }
            bpf::JUMP => k as usize,
            bpf::JUMP_IF_EQUAL => jump(accumulator == k),
            bpf::JUMP_IF_AT_LEAST => jump(accumulator >= k),
            code => return Err(Malformed::Instruction { at, code }),
        };
        at += 1 + skipped;
        steps += 1;
    }
}

impl SeccompData {
    /// The word at an offset of the kernel's structure.
    fn word(&self, offset: u32) -> Option<u32> {
        let half = |value: u64| if offset.is_multiple_of(8) { value as u32 } else { (value >> 32) as u32 };
        match offset {
            _ if !offset.is_multiple_of(4) => None,
            0 => Some(self.number),
            4 => Some(self.architecture),
            8 | 12 => Some(half(self.instruction_pointer)),
            _ => self.arguments.get((offset as usize - 16) / 8).map(|argument| half(*argument)),
        }
    }
}
