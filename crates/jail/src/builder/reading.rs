//! What the builder reads at its gate: the blueprint, step by step.

use std::os::fd::RawFd;

use super::{Failure, Phase};
use crate::blueprint::Blueprint;
use crate::sys::{self, Errno, Outcome, Pointers};

/// Receives the blueprint into the room that was made for it before clone.
pub(super) fn receive<'room>(
    gate: RawFd,
    room: &'room mut [u8],
    trees: &'room mut [RawFd],
) -> Outcome<Blueprint<'room>> {
    let mut length = [0; 8];
    let (mut filled, received) = sys::receive(gate, &mut length, trees)?;
    while filled < length.len() {
        filled += more(gate, &mut length[filled..])?;
    }
    let length = u64::from_le_bytes(length) as usize;
    let room = room.get_mut(..length).ok_or(Errno(libc::EMSGSIZE))?;
    let mut filled = 0;
    while filled < length {
        filled += more(gate, &mut room[filled..])?;
    }
    Ok(Blueprint::new(room, &trees[..received]))
}

/// Reads some bytes; none at all means that the keeper is gone.
fn more(gate: RawFd, buffer: &mut [u8]) -> Outcome<usize> {
    loop {
        match sys::read(gate, buffer) {
            Ok(0) => return Err(Errno(libc::EPIPE)),
            Err(Errno(libc::EINTR)) => {}
            read => return read,
        }
    }
}

pub(super) fn read_arguments<'bytes>(blueprint: &mut Blueprint<'bytes>) -> Outcome<Pointers<'bytes>> {
    let malformed = Errno(libc::EBADMSG);
    let mut arguments = Pointers::new();
    for _ in 0..blueprint.arguments().ok_or(malformed)? {
        arguments.push(blueprint.argument().ok_or(malformed)?)?;
    }
    Ok(arguments)
}

pub(super) fn run_steps(blueprint: &mut Blueprint<'_>) -> Result<(), Failure> {
    let mut number = 0;
    while !blueprint.is_done() {
        let failed = |errno: Errno| Failure { phase: Phase::Steps, step: number, errno: errno.0 };
        let step = blueprint.step().ok_or(failed(Errno(libc::EBADMSG)))?;
        step.run().map_err(failed)?;
        number += 1;
    }
    Ok(())
}
