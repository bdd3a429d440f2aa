//! The way to an entry: the directory that it is in, opened from the top with no link on it, and made where it is missing.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::tree::system;
use crate::error::{Action, UnpackError};
use crate::name::Name;

/// How a directory beneath another is opened.
pub type Open = fn(BorrowedFd<'_>, &[u8]) -> Result<OwnedFd, Errno>;

/// The directories beneath one.
#[derive(Debug)]
pub struct Way<'a> {
    root: BorrowedFd<'a>,
    open: Open,
    /// The directory of the last entry: the next one is usually in it, too.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'a> Way<'a> {
    /// Those beneath `root`, each opened by `open`.
    #[must_use]
    pub const fn new(root: BorrowedFd<'a>, open: Open) -> Self {
        Self { root, open, last: None }
    }

    /// Opens one of them, or the top.
    pub fn open(&self, directory: &[u8]) -> Result<OwnedFd, Errno> {
        (self.open)(self.root, directory)
    }

    /// The directory of an entry, which has been entered.
    pub fn parent(&self, name: &Name) -> Result<BorrowedFd<'_>, UnpackError> {
        let (directory, _) = name.split();
        match &self.last {
            _ if directory.is_empty() => Ok(self.root),
            Some((path, parent)) if path == directory => Ok(parent.as_fd()),
            _ => Err(UnpackError::Changed { name: name.as_bytes().to_vec() }),
        }
    }

    /// Opens the directory of an entry, and makes what is missing on the way.
    pub fn enter(&mut self, name: &Name) -> Result<(), UnpackError> {
        let (directory, _) = name.split();
        if directory.is_empty() || self.last.as_ref().is_some_and(|(path, _)| path == directory) {
            return Ok(());
        }
        let opened = match self.open(directory) {
            Err(Errno::NOENT) => self.make(name),
            opened => opened,
        };
        let opened = opened.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => {
                UnpackError::Through { name: name.as_bytes().to_vec() }
            }
            errno => system(Action::Open, name)(errno),
        })?;
        self.last = Some((directory.to_vec(), opened));
        Ok(())
    }

    /// Makes the directories above an entry one by one, each opened before the next is made in it.
    fn make(&self, name: &Name) -> Result<OwnedFd, Errno> {
        let mut current = self.open(b"")?;
        for part in name.parts().take(name.depth().saturating_sub(1)) {
            current = match (self.open)(current.as_fd(), part) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&current, part, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    (self.open)(current.as_fd(), part)?
                }
                opened => opened?,
            };
        }
        Ok(current)
    }
}

/// Opens a directory beneath another, or that one itself, with no link on the way and none at its end.
pub fn open_beneath(root: BorrowedFd<'_>, directory: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let directory = if directory.is_empty() { b"." } else { directory };
    rustix::fs::openat2(root, directory, flags, Mode::empty(), resolve)
}
