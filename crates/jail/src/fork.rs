//! A second process from the same program, without starting it anew: the keeper's supervisor. It keeps only the
//! descriptors that it is given; the keeper's stdin above all leads to the owner's side.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys::{self, Outcome};

/// Which side of a fork we are on.
#[derive(Debug)]
pub enum Forked<const N: usize> {
    /// The process that asked; the child is its own.
    Parent {
        /// The child's process id.
        pid: Pid,
        /// Becomes readable when the child has ended.
        pidfd: OwnedFd,
    },
    /// The child, with what it kept.
    Child([OwnedFd; N], Vec<OwnedFd>),
}

/// Forks. The calling process must have one thread: the child goes on with a copy of everything. It keeps
/// `kept`, and `further` of which there is not always the same number.
pub fn fork<const N: usize>(kept: [OwnedFd; N], further: Vec<OwnedFd>) -> io::Result<Forked<N>> {
    match sys::fork()? {
        Some(pid) => {
            let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Forked::Parent { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())? })
        }
        None => match keep_only(kept, further) {
            Ok((kept, further)) => Ok(Forked::Child(kept, further)),
            // Nobody in here but the one who asked for the child may go on as the caller.
            Err(errno) => sys::exit(errno.0),
        },
    }
}

/// Ends a process that was forked, at once: what is to be done at the program's end is for whoever was started as it.
pub fn end(code: i32) -> ! {
    sys::exit(code)
}

/// Moves descriptors to the first numbers and closes all others.
fn keep_only<const N: usize>(
    kept: [OwnedFd; N],
    further: Vec<OwnedFd>,
) -> Outcome<([OwnedFd; N], Vec<OwnedFd>)> {
    const FIRST: RawFd = 3;
    let null = sys::open(c"/dev/null", libc::O_RDWR, 0)?;
    for number in 0..FIRST {
        sys::duplicate_onto(null, number)?;
    }
    // First up and out of the way, then down to the lowest numbers, so that all others can be closed.
    let above = FIRST + (N + further.len()) as RawFd;
    let all = kept.iter().chain(&further);
    let moved: Outcome<Vec<RawFd>> =
        all.map(|descriptor| sys::duplicate_above(descriptor.as_raw_fd(), above)).collect();
    for (number, moved) in (FIRST..).zip(moved?) {
        sys::duplicate_onto(moved, number)?;
    }
    // The old owners must not close numbers that are others' by now.
    let _ = kept.map(std::mem::forget);
    further.into_iter().for_each(std::mem::forget);
    sys::close_from(above)?;
    for number in FIRST..above {
        sys::close_on_exec(number)?;
    }
    let mut number = FIRST - 1;
    let kept = std::array::from_fn(|_| {
        number += 1;
        sys::own(number)
    });
    Ok((kept, (number + 1..above).map(sys::own).collect()))
}
