//! A trial: a child process in new namespaces that makes its attempts one after the other, up to the first that
//! is refused, tells which one that was, and ends. In the child only raw system calls on data made before.

use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::JailError;
use crate::helper::Helper;
use crate::ids::IdMap;
use crate::sys::{self, Cloned, Errno, Outcome};
use crate::yard::Face;

/// A step that was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) step: String,
    pub(super) source: io::Error,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.step, self.source)
    }
}

/// What to do, for a message, and the doing of it.
pub(super) type Attempt<'data> = (&'static str, &'data dyn Fn() -> Outcome);

/// The namespaces and the ids of a child.
pub(super) struct Trial<'ids> {
    namespaces: i32,
    ids: Option<&'ids IdMap>,
}

/// What the child says: the number of its refused attempt and the kernel's error, or that all went well.
const DONE: u32 = u32::MAX;
const WORD: usize = 8;

impl<'ids> Trial<'ids> {
    /// In the caller's own namespaces.
    pub(super) const fn bare() -> Self {
        Self { namespaces: 0, ids: None }
    }

    /// In a user namespace and these, with the caller as the only id: that map every caller may write.
    pub(super) const fn namespaces(namespaces: i32) -> Self {
        Self { namespaces: libc::CLONE_NEWUSER | namespaces, ids: Some(&IdMap::Single) }
    }

    /// In a user namespace with these ids.
    pub(super) const fn mapped(ids: &'ids IdMap) -> Self {
        Self { namespaces: libc::CLONE_NEWUSER, ids: Some(ids) }
    }

    /// Makes the attempts.
    pub(super) fn run(&self, attempts: &[Attempt<'_>]) -> Result<(), Refusal> {
        let refused = |step: &str, source| Refusal { step: step.to_owned(), source };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused("make a pipe", errno.into()));
        let (gate_inner, gate) = pipe()?;
        let (status, status_inner) = pipe()?;
        let cloned = sys::clone_into(self.namespaces as u32 as u64, None);
        let (pid, pidfd) = match cloned.map_err(|errno| refused("make the namespace", errno.into()))? {
            Cloned::Child => {
                // Our copy of the gate's outer end would keep end-of-file away if the parent dies.
                let _ = sys::close(gate.as_raw_fd());
                child(gate_inner.as_raw_fd(), status_inner.as_raw_fd(), attempts)
            }
            Cloned::Parent { pid, pidfd } => (pid, pidfd),
        };
        drop(status_inner);
        let mapped = self
            .ids
            .map_or(Ok(()), |ids| ids.write(pid, Face::Agent)?.into_iter().try_for_each(Helper::finish));
        if mapped.is_ok() {
            // A child that is gone already says so by its silence.
            let _ = rustix::io::write(&gate, b"g");
        }
        drop(gate);
        let mut word = Vec::new();
        let heard = std::fs::File::from(status).take(WORD as u64).read_to_end(&mut word);
        let _ = sys::reap(pidfd.as_fd());
        mapped.map_err(|error| match error {
            JailError::IdMap { what, source } => Refusal { step: format!("map its ids ({what})"), source },
            error => Refusal::from(error),
        })?;
        heard.map_err(|source| refused("hear from the child", source))?;
        let Ok(word) = <[u8; WORD]>::try_from(word) else {
            let killed = io::Error::other("the child was killed");
            return Err(refused("make a system call that a sandbox needs", killed));
        };
        let (number, errno) = decode(word);
        match attempts.get(number as usize) {
            None => Ok(()),
            Some((step, _)) => Err(refused(step, io::Error::from_raw_os_error(errno))),
        }
    }
}

/// With a range of ids the child becomes the root of its namespace, as the builder of a sandbox does.
pub(super) fn become_root(ids: &IdMap) -> Outcome {
    if !ids.has_root() {
        return Ok(());
    }
    sys::set_groups(&[])?;
    sys::set_group(0)?;
    sys::set_user(0)
}

fn child(gate: RawFd, status: RawFd, attempts: &[Attempt<'_>]) -> ! {
    if sys::read(gate, &mut [0]) != Ok(1) {
        sys::exit(1);
    }
    let refused = attempts
        .iter()
        .enumerate()
        .find_map(|(number, (_, attempt))| Some((number as u32, attempt().err()?)));
    let (number, Errno(errno)) = refused.unwrap_or((DONE, Errno(0)));
    let _ = sys::write(status, &encode(number, errno));
    sys::exit(0)
}

fn encode(number: u32, errno: i32) -> [u8; WORD] {
    (u64::from(number) << 32 | u64::from(errno as u32)).to_le_bytes()
}

fn decode(word: [u8; WORD]) -> (u32, i32) {
    let word = u64::from_le_bytes(word);
    ((word >> 32) as u32, word as u32 as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refused_attempt_is_named() {
        let attempts: [Attempt<'_>; 3] = [
            ("one", &|| Ok(())),
            ("two", &|| Err(Errno(libc::EROFS))),
            ("three", &|| Err(Errno(libc::EPERM))),
        ];
        let refusal = Trial::bare().run(&attempts).unwrap_err();
        assert_eq!((refusal.step.as_str(), refusal.source.raw_os_error()), ("two", Some(libc::EROFS)));
        assert!(Trial::bare().run(&attempts[..1]).is_ok());
    }

    #[test]
    fn a_child_that_is_killed_is_a_refusal() {
        let kill = || {
            let pid = rustix::process::getpid();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL)
                .map_err(|e| Errno(e.raw_os_error()))
        };
        let refusal = Trial::bare().run(&[("end", &kill)]).unwrap_err();
        assert!(refusal.source.raw_os_error().is_none(), "{refusal}");
    }
}
