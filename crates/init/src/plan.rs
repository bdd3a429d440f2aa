//! An exec request as it may run: checked once, at the door, and turned into what the kernel takes. The request
//! comes from outside and may be nonsense; nothing of it is used before it has become a `Plan`.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use libc::{E2BIG, EINVAL};
use wire::{Exec, WindowSize};

/// How much argv and environment may weigh together, pointers included; the kernel's own limit for a stack of
/// the usual size.
const LARGEST: usize = 2 * 1024 * 1024;

/// The search path where the environment names none, as execvp has it.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A process to start, all of it valid and NUL-terminated.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    /// The files to try, in this order.
    pub(crate) candidates: Vec<CString>,
    pub(crate) workdir: CString,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) terminal: Option<WindowSize>,
    /// Its stdout, where it is given one instead of a pipe of ours.
    pub(crate) output: Option<OwnedFd>,
}

impl Plan {
    /// Checks a request; the error is the error number to answer with.
    pub(crate) fn new(exec: &Exec) -> Result<Self, i32> {
        let Some(command) = exec.argv.first() else { return Err(EINVAL) };
        // The kernel reads this id as "leave it as it is", which would be init's own.
        if exec.uid == u32::MAX || exec.gid == u32::MAX {
            return Err(EINVAL);
        }
        let all = exec.argv.iter().chain(&exec.environment);
        if all.map(|text| weight(text)).sum::<usize>() > LARGEST {
            return Err(E2BIG);
        }
        Ok(Self {
            arguments: terminate(&exec.argv)?,
            environment: terminate(&exec.environment)?,
            candidates: candidates(command, &exec.environment)?,
            workdir: CString::new(exec.workdir.as_ref()).map_err(|_| EINVAL)?,
            uid: exec.uid,
            gid: exec.gid,
            terminal: exec.terminal,
            output: None,
        })
    }
}

/// What a text costs: its bytes, its NUL and the pointer to it.
fn weight(text: &[u8]) -> usize {
    text.len() + 1 + size_of::<usize>()
}

fn terminate(texts: &[Bytes]) -> Result<Vec<CString>, i32> {
    texts.iter().map(|text| CString::new(text.as_ref()).map_err(|_| EINVAL)).collect()
}

/// Where the command may be. The search itself is the kernel's, as the process's own user: looking from here
/// would answer with init's rights.
fn candidates(command: &[u8], environment: &[Bytes]) -> Result<Vec<CString>, i32> {
    if command.is_empty() || command.contains(&b'/') {
        return Ok(vec![CString::new(command).map_err(|_| EINVAL)?]);
    }
    let path = environment.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).unwrap_or(DEFAULT_PATH);
    let mut found = Vec::new();
    let mut total = 0;
    for directory in path.split(|byte| *byte == b':') {
        let mut candidate = directory.to_vec();
        // An empty entry is the working directory.
        if !directory.is_empty() {
            candidate.push(b'/');
        }
        candidate.extend_from_slice(command);
        total += weight(&candidate);
        if total > LARGEST {
            return Err(E2BIG);
        }
        found.push(CString::new(candidate).map_err(|_| EINVAL)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(argv: &[&'static [u8]], environment: &[&'static [u8]]) -> Exec {
        Exec {
            argv: argv.iter().map(|text| Bytes::from_static(text)).collect(),
            environment: environment.iter().map(|text| Bytes::from_static(text)).collect(),
            workdir: Bytes::from_static(b"/"),
            ..Exec::default()
        }
    }

    fn tried(argv: &[&'static [u8]], environment: &[&'static [u8]]) -> Vec<String> {
        let plan = Plan::new(&request(argv, environment)).unwrap();
        plan.candidates.into_iter().map(|path| path.into_string().unwrap()).collect()
    }

    #[test]
    fn commands_are_looked_up_as_execvp_does() {
        assert_eq!(tried(&[b"ls"], &[b"A=b", b"PATH=/a:/b/"]), ["/a/ls", "/b//ls"]);
        assert_eq!(tried(&[b"ls"], &[b"PATH=:/a"]), ["ls", "/a/ls"]);
        assert_eq!(tried(&[b"ls"], &[]), ["/bin/ls", "/usr/bin/ls"]);
        assert_eq!(tried(&[b"./ls"], &[b"PATH=/a"]), ["./ls"]);
        assert_eq!(tried(&[b""], &[b"PATH=/a"]), [""]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Plan::new(&request(&[], &[])).unwrap_err(), EINVAL);
        assert_eq!(Plan::new(&request(&[b"a\0b"], &[])).unwrap_err(), EINVAL);
        assert_eq!(Plan::new(&request(&[b"a"], &[b"A=\0"])).unwrap_err(), EINVAL);
        let unchanged_id = Exec { uid: u32::MAX, ..request(&[b"a"], &[]) };
        assert_eq!(Plan::new(&unchanged_id).unwrap_err(), EINVAL);
        let unchanged_group = Exec { gid: u32::MAX, ..request(&[b"a"], &[]) };
        assert_eq!(Plan::new(&unchanged_group).unwrap_err(), EINVAL);
        let workdir = Exec { workdir: Bytes::from_static(b"/\0"), ..request(&[b"a"], &[]) };
        assert_eq!(Plan::new(&workdir).unwrap_err(), EINVAL);
    }

    #[test]
    fn sizes_are_bounded() {
        let large = Exec { argv: vec![Bytes::from(vec![b'a'; LARGEST])], ..Exec::default() };
        assert_eq!(Plan::new(&large).unwrap_err(), E2BIG);
        let many = Exec { argv: vec![Bytes::from_static(b"a"); LARGEST / 8], ..Exec::default() };
        assert_eq!(Plan::new(&many).unwrap_err(), E2BIG);
        let mut path = b"PATH=".to_vec();
        path.resize(100_000, b':');
        let product = Exec {
            argv: vec![Bytes::from(vec![b'a'; 100_000])],
            environment: vec![path.into()],
            ..Exec::default()
        };
        assert_eq!(Plan::new(&product).unwrap_err(), E2BIG);
    }
}
