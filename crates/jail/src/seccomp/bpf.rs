//! The few instructions of classic BPF that filters are made of, and how blocks of them are joined.
//!
//! Every [`Block`] ends in a verdict on every path and jumps only within itself, so blocks can be put one behind
//! the other without any labels.

use libc::sock_filter;

use super::rule::Action;

/// Instructions of which every path ends in a verdict.
pub(super) type Block = Vec<sock_filter>;

pub(super) const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub(super) const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
pub(super) const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub(super) const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What the accumulator is asked.
#[derive(Clone, Copy)]
pub(super) enum Test {
    Equal,
    AtLeast,
}

/// Loads the 32-bit word at this offset of the data that describes a call.
pub(super) fn load(offset: u32) -> sock_filter {
    statement(LOAD_WORD, offset)
}

/// Keeps only these bits of the accumulator.
pub(super) fn and(mask: u32) -> sock_filter {
    statement(AND, mask)
}

/// Ends the program with a verdict.
pub(super) fn conclude(action: Action) -> sock_filter {
    statement(RETURN, action.encode())
}

/// Goes to `yes` if the accumulator passes the test against any of the operands, else to `no`. The accumulator
/// arrives unchanged in both.
///
/// A conditional jump reaches 255 instructions. Where `no` is longer than that, the last test skips an
/// unconditional jump, which reaches everything.
pub(super) fn branch(test: Test, operands: &[u32], yes: Block, no: Block) -> Block {
    let code = match test {
        Test::Equal => JUMP_IF_EQUAL,
        Test::AtLeast => JUMP_IF_AT_LEAST,
    };
    let near = operands.len() + no.len() <= usize::from(u8::MAX);
    let mut block = Block::with_capacity(operands.len() + 1 + no.len() + yes.len());
    for (index, &k) in operands.iter().enumerate() {
        let tests_left = operands.len() - 1 - index;
        let jt = if near { tests_left + no.len() } else { tests_left };
        let jf = if near || tests_left > 0 { 0 } else { 1 };
        block.push(sock_filter { code, jt: jt as u8, jf, k });
    }
    if !near {
        block.push(statement(JUMP, no.len() as u32));
    }
    block.extend(no);
    block.extend(yes);
    block
}

/// A balanced tree over the accumulator: each leaf holds from its number on, up to the next one's. The first leaf
/// must start at zero.
pub(super) fn tree(leaves: &[(u32, Block)]) -> Block {
    match leaves {
        [] => Block::new(),
        [(_, only)] => only.clone(),
        _ => {
            let (below, above) = leaves.split_at(leaves.len() / 2);
            branch(Test::AtLeast, &[above[0].0], tree(above), tree(below))
        }
    }
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::super::interpret::{SeccompData, interpret};
    use super::*;

    fn action_for(program: &[sock_filter], number: u32) -> Action {
        let data = SeccompData { number, architecture: 0, instruction_pointer: 0, arguments: [0; 6] };
        interpret(program, &data).unwrap().action
    }

    #[test]
    fn jumps_reach_over_blocks_of_any_length() {
        for length in [1, 2, 252, 253, 254, 255, 256, 257, 1000] {
            let mut no: Block = (1..length).map(|_| and(u32::MAX)).collect();
            no.push(conclude(Action::Errno(1)));
            let yes = vec![conclude(Action::Allow)];
            let mut program = vec![load(0)];
            program.extend(branch(Test::Equal, &[3, 5, 7], yes, no));
            for number in 0..9 {
                let expected = if [3, 5, 7].contains(&number) { Action::Allow } else { Action::Errno(1) };
                assert_eq!(action_for(&program, number), expected, "{number} over {length}");
            }
        }
    }

    #[test]
    fn a_tree_finds_every_leaf() {
        for count in 1..700u16 {
            let leaves: Vec<_> =
                (0..count).map(|leaf| (u32::from(leaf) * 3, vec![conclude(Action::Errno(leaf))])).collect();
            let mut program = vec![load(0)];
            program.extend(tree(&leaves));
            for number in 0..u32::from(count) * 3 {
                assert_eq!(action_for(&program, number), Action::Errno((number / 3) as u16));
            }
            assert_eq!(action_for(&program, u32::MAX), Action::Errno(count - 1));
        }
    }
}
