//! The set-user-id helpers that write the id maps of a user with subuids: newuidmap and newgidmap.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::error::JailError;
use crate::ids::MAPPED_IDS;
use crate::step::host_path;
use crate::subordinates::SubordinateRange;
use crate::sys::{self, Given, Others, Started};

/// A helper at work on a map.
#[derive(Debug)]
pub(crate) struct Helper {
    name: &'static str,
    process: Started,
}

impl Helper {
    /// Where a helper is; only root's directories are looked in, whatever the caller's PATH says.
    pub(crate) fn find(name: &str) -> Option<PathBuf> {
        ["/usr/bin", "/bin", "/usr/sbin", "/run/wrappers/bin"]
            .iter()
            .map(|directory| Path::new(directory).join(name))
            .find(|path| path.exists())
    }

    /// Starts a helper on the map of `pid`. Nothing of ours goes to a program with other privileges but its arguments.
    pub(crate) fn start(
        name: &'static str,
        pid: i32,
        agent: u32,
        caller: u32,
        range: SubordinateRange,
    ) -> Result<Self, JailError> {
        let failed = |source: io::Error| JailError::IdMap { what: name.to_owned(), source };
        let path = Self::find(name).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let null = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
        let process = Started::new(Given {
            path: host_path(&path)?,
            words: words(name, pid, agent, caller, range),
            variables: Vec::new(),
            stdin: null.as_fd(),
            outputs: null.as_fd(),
            others: Others::Closed,
        });
        Ok(Self { name, process: process.map_err(|errno| failed(errno.into()))? })
    }

    /// Has the two run beside each other, and the other one where we are, who will wait; for speed alone.
    pub(crate) fn keep_apart(&self, other: &Self) {
        let _ = sys::keep_apart(self.process.pid(), other.process.pid());
    }

    /// Waits until the map is written.
    pub(crate) fn finish(self) -> Result<(), JailError> {
        let failed = |source: io::Error| JailError::IdMap { what: self.name.to_owned(), source };
        let status = waitid(WaitId::PidFd(self.process.pidfd()), WaitIdOptions::EXITED);
        match status.map_err(|errno| failed(errno.into()))?.and_then(|status| status.exit_status()) {
            Some(0) => Ok(()),
            // It did not even start: that code is the reason, as helpers themselves end with nothing but 0 and 1.
            Some(errno) if errno > 1 => Err(failed(io::Error::from_raw_os_error(errno))),
            _ => Err(failed(io::ErrorKind::PermissionDenied.into())),
        }
    }
}

/// Inside: 0 to agent-1 from the range, the agent is the caller, and the rest of the range above.
fn words(name: &str, pid: i32, agent: u32, caller: u32, range: SubordinateRange) -> Vec<CString> {
    let below = agent.min(range.count);
    let above = range.count.saturating_sub(agent).min(MAPPED_IDS - agent - 1);
    let mut extents = vec![(0, range.first, below), (agent, caller, 1)];
    if above > 0 {
        extents.push((agent + 1, range.first + below, above));
    }
    let numbers = extents.into_iter().flat_map(|(inside, outside, count)| [inside, outside, count]);
    let words =
        [name.to_owned(), pid.to_string()].into_iter().chain(numbers.map(|number| number.to_string()));
    words.filter_map(|word| CString::new(word).ok()).collect()
}
