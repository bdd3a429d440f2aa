//! Waiting for one of several descriptors, for some time.

use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::error::KeeperError;

/// Whether something came, or only time went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Came,
    InVain,
}

pub(crate) fn wait(descriptors: &mut [PollFd<'_>]) -> Result<(), KeeperError> {
    wait_until(descriptors, None).map(drop)
}

pub(crate) fn wait_until(
    descriptors: &mut [PollFd<'_>],
    deadline: Option<Instant>,
) -> Result<Waited, KeeperError> {
    loop {
        let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let rest = rest.and_then(|rest| Timespec::try_from(rest).ok());
        match poll(descriptors, rest.as_ref()) {
            Ok(0) => return Ok(Waited::InVain),
            Ok(_) => return Ok(Waited::Came),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(KeeperError::Watch(errno.into())),
        }
    }
}
