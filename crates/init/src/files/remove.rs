//! Removing a file or a whole tree.

use archive::{Closed, EmptyError};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use wire::{FileCode, FileDone, RemoveFile};

use super::failure::Failure;

/// Removes what was asked for.
pub(super) fn remove(ask: &RemoveFile) -> Result<FileDone, Failure> {
    let failed = |errno| Failure::system(&ask.path, errno);
    let mut done = FileDone { entries: 1, ..FileDone::default() };
    match rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::empty()) {
        Err(Errno::ISDIR) if ask.recursive => {}
        Err(Errno::ISDIR) => {
            rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::REMOVEDIR).map_err(failed)?;
            return Ok(done);
        }
        removed => return removed.map(|()| done).map_err(failed),
    }
    done.entries +=
        archive::empty(CWD, &ask.path, Closed::Refused).map_err(|EmptyError { name, errno }| {
            let path =
                if name.is_empty() { ask.path.to_vec() } else { [&ask.path[..], b"/", &name].concat() };
            Failure::system(&path, errno)
        })?;
    match rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::REMOVEDIR) {
        // Filled again since, or replaced by a link to somewhere else, which is not what was asked for.
        Err(Errno::NOTEMPTY | Errno::NOTDIR) => Err(Failure::new(FileCode::Changed, &ask.path)),
        removed => removed.map(|()| done).map_err(failed),
    }
}
