//! Root's id ranges: a span of the host's ids cut into ranges of 64 Ki, each locked by the sandbox that has
//! it. A range is one byte of one file; the kernel drops the lock when its holder ends, however it ends.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::JailError;
use crate::sys;

/// The span starts above what distributions hand out as subuids and what systemd gives to containers.
const SPAN_FIRST: u32 = 0x7000_0000;
const RANGE: u32 = 0x1_0000;
/// The span ends below 2^31, as some programs take ids for signed numbers.
const RANGES: u32 = 0x1000;

/// The file of locks.
pub(crate) struct IdRanges {
    path: PathBuf,
    file: OwnedFd,
}

impl IdRanges {
    pub(crate) fn open(path: &Path) -> Result<Self, JailError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|source| JailError::File { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file: file.into() })
    }

    /// Takes a free range: its first id, and the lock that keeps it.
    pub(crate) fn take(self) -> Result<(u32, OwnedFd), JailError> {
        // Beginning at our own process id, neighbours that start together rarely try the same range.
        let start = std::process::id() % RANGES;
        for offset in 0..RANGES {
            let index = (start + offset) % RANGES;
            match sys::lock_byte(&self.file, u64::from(index)) {
                Ok(()) => return Ok((SPAN_FIRST + index * RANGE, self.file)),
                Err(errno) if errno.0 == libc::EAGAIN || errno.0 == libc::EACCES => {}
                Err(errno) => {
                    return Err(JailError::File { path: self.path, source: io::Error::from(errno) });
                }
            }
        }
        Err(JailError::NoIdRange(RANGES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_takers_get_two_ranges_and_a_freed_one_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ids");
        let (first, lock) = IdRanges::open(&path).unwrap().take().unwrap();
        let (second, _kept) = IdRanges::open(&path).unwrap().take().unwrap();
        assert_eq!(second, first + RANGE);
        drop(lock);
        let (again, _kept) = IdRanges::open(&path).unwrap().take().unwrap();
        assert_eq!(again, first);
    }
}
