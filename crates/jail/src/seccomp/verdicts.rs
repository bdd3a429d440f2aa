//! One verdict of a kind, for all paths that come to it. Blocks bring theirs along, so that they can be put together freely;
//! in a whole filter that is nearly half of the instructions, and the kernel translates each of them twice, in every process
//! that puts the filter on.

use std::collections::BTreeMap;

use libc::sock_filter;

use super::bpf::{self, Block};

/// The same program with the last verdict of each kind for all. Where one of them is out of reach all stays as it is.
pub(super) fn share(program: Block) -> Block {
    shared(&program).unwrap_or(program)
}

fn shared(program: &[sock_filter]) -> Option<Block> {
    let verdicts = program.iter().enumerate().filter(|(_, step)| step.code == bpf::RETURN);
    let last: BTreeMap<u32, usize> = verdicts.map(|(at, step)| (step.k, at)).collect();
    // Where a jump ends up, past others on its way.
    let end_of = |mut at: usize| loop {
        match program.get(at)? {
            step if step.code == bpf::JUMP => at += 1 + step.k as usize,
            step if step.code == bpf::RETURN => return last.get(&step.k).copied(),
            _ => return Some(at),
        }
    };
    let mut exits: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let step = program.get(at)?;
        let next = match step.code {
            bpf::RETURN => [at, at],
            bpf::JUMP_IF_EQUAL | bpf::JUMP_IF_AT_LEAST => {
                [end_of(at + 1 + usize::from(step.jt))?, end_of(at + 1 + usize::from(step.jf))?]
            }
            // What comes behind is run into, and stays where it is.
            bpf::LOAD_WORD | bpf::AND => [at + 1, at + 1],
            // No block of ours runs into a jump, nor has anything else.
            _ => return None,
        };
        if exits.insert(at, next).is_none() {
            open.extend(next);
        }
    }
    // What nobody comes to is left out.
    let places: BTreeMap<usize, usize> = exits.keys().copied().zip(0..).collect();
    let steps = exits.iter().map(|(at, exits)| {
        let step = program.get(*at)?;
        let skipped = |exit: usize| u8::try_from(places.get(&exit)? - places.get(at)? - 1).ok();
        Some(match step.code {
            bpf::JUMP_IF_EQUAL | bpf::JUMP_IF_AT_LEAST => {
                sock_filter { jt: skipped(exits[0])?, jf: skipped(exits[1])?, ..*step }
            }
            _ => *step,
        })
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use policy::Nesting;

    use super::super::architecture::Architecture;
    use super::super::bpf::Test;
    use super::super::filter::Filter;
    use super::super::interpret::{SeccompData, interpret};
    use super::super::rule::Action;
    use super::*;

    fn verdict(program: &[sock_filter], number: u32) -> Action {
        let architecture = Architecture::NATIVE.audit_value();
        let data = SeccompData { number, architecture, instruction_pointer: 0, arguments: [0; 6] };
        interpret(program, &data).unwrap().action
    }

    #[test]
    fn what_is_decided_stays_and_what_is_said_twice_goes() {
        let actions = [Action::Allow, Action::Errno(1), Action::KillProcess];
        for count in 1..400 {
            let leaves: Vec<_> = (0..count)
                .map(|leaf| (leaf * 2, vec![bpf::conclude(actions[leaf as usize * 7 % 3])]))
                .collect();
            let mut program = vec![bpf::load(0)];
            program.extend(bpf::tree(&leaves));
            let shared = share(program.clone());
            for number in 0..count * 2 + 2 {
                assert_eq!(verdict(&shared, number), verdict(&program, number), "{number} of {count}");
            }
            let verdicts = shared.iter().filter(|step| step.code == bpf::RETURN).count();
            let is_near = shared.len() <= usize::from(u8::MAX);
            assert!(!is_near || verdicts <= actions.len(), "{verdicts} of {count}");
        }
    }

    #[test]
    fn a_verdict_that_is_run_into_stays() {
        let program =
            vec![bpf::load(0), bpf::and(1), bpf::conclude(Action::Allow), bpf::conclude(Action::Allow)];
        let shared = share(program);
        assert_eq!(shared.len(), 3);
        assert_eq!(verdict(&shared, 1), Action::Allow);
    }

    #[test]
    fn each_of_our_filters_says_every_verdict_once() {
        for machine in [Architecture::X86_64, Architecture::Aarch64] {
            let programs = [
                Filter::for_sandbox(machine, Nesting::Closed),
                Filter::for_sandbox(machine, Nesting::Open),
                Filter::for_own_stack(machine),
                Filter::for_supervisor(machine),
            ];
            for program in programs {
                let verdicts = program.instructions().iter().filter(|step| step.code == bpf::RETURN);
                let mut said: Vec<_> = verdicts.map(|step| step.k).collect();
                let all = said.len();
                said.sort_unstable();
                said.dedup();
                assert_eq!(said.len(), all, "{machine:?}");
            }
        }
    }

    #[test]
    fn with_a_verdict_out_of_reach_all_stays() {
        let far = (0..300).map(|number| (number * 2 + 1, vec![bpf::conclude(Action::Errno(number as u16))]));
        let leaves: Vec<_> = std::iter::once((0, vec![bpf::conclude(Action::Allow)])).chain(far).collect();
        let mut program = vec![bpf::load(0)];
        program.extend(bpf::branch(
            Test::Equal,
            &[7],
            vec![bpf::conclude(Action::Allow)],
            bpf::tree(&leaves),
        ));
        let shared = share(program.clone());
        (0..700)
            .for_each(|number| assert_eq!(verdict(&shared, number), verdict(&program, number), "{number}"));
    }
}
