//! Moves single files between the owner's tree and a place beside it. Every directory is opened beneath the owner's
//! without following a link; a file that is not the one that was compared goes back at once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fsync, mkdirat, openat, openat2, renameat_with, statat,
    syncfs, unlinkat,
};
use rustix::io::Errno;

use crate::error::ReviewError;
use crate::inert::inert_name;
use crate::plan::{Identity, Plan, Step};
use crate::staging::above;

/// More files than this are written to the disk with everything else that waits there.
const ONE_BY_ONE: usize = 500;

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Whether a step could be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It is as before.
    Yes,
    /// The owner has changed the file since; it stays.
    Edited,
}

/// The two ends of a move.
pub(crate) struct Mover {
    owner: OwnedFd,
    place: OwnedFd,
}

/// Opens the directory of a path in the owner's tree; the last part of the path.
pub(crate) fn reach<'a>(owner: &OwnedFd, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8]), Errno> {
    let directory = above(path);
    let name = path.get(if directory.is_empty() { 0 } else { directory.len() + 1 }..).unwrap_or_default();
    let directory = if directory.is_empty() { b"." } else { directory };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    loop {
        match openat2(owner, directory, flags, Mode::empty(), BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return Ok((opened?, name)),
        }
    }
}

/// What is at a path in the owner's tree; nothing where nothing is.
pub(crate) fn identity(owner: &OwnedFd, path: &[u8]) -> Result<Option<Identity>, Errno> {
    let found = reach(owner, path).and_then(|(directory, name)| identity_in(&directory, name));
    match found {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

fn identity_in(directory: &OwnedFd, name: &[u8]) -> Result<Identity, Errno> {
    Ok(Identity::of(&statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

fn prepared(path: &[u8]) -> Vec<u8> {
    [b"new/", path].concat()
}

fn aside(number: usize) -> Vec<u8> {
    format!("old/{number}").into_bytes()
}

impl Mover {
    pub(crate) fn new(owner: &Path, place: OwnedFd) -> Result<Self, ReviewError> {
        let owner = File::open(owner).map_err(|_| ReviewError::OwnerGone(owner.to_owned()))?;
        Ok(Self { owner: owner.into(), place })
    }

    /// Has what is prepared written to the disk.
    pub(crate) fn sync_new(&self, plan: &Plan) -> io::Result<()> {
        let is_new = |step: &&Step| matches!(step, Step::Replace { .. } | Step::Add { .. });
        let new: Vec<Vec<u8>> = plan.steps.iter().filter(is_new).map(|step| prepared(step.path())).collect();
        if new.len() > ONE_BY_ONE {
            return Ok(syncfs(&self.place)?);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for path in new {
            match openat(&self.place, path, flags, Mode::empty()) {
                Ok(file) => fsync(file)?,
                // A link has no content of its own.
                Err(Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Has what was moved written to the disk: the directories in which it is.
    pub(crate) fn sync(&self, plan: &Plan) -> io::Result<()> {
        let directories: BTreeSet<&[u8]> = plan.steps.iter().map(|step| above(step.path())).collect();
        if directories.len() > ONE_BY_ONE {
            return Ok(syncfs(&self.owner)?);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for directory in directories {
            let path = if directory.is_empty() { b".".as_slice() } else { directory };
            match openat2(&self.owner, path, flags, Mode::empty(), BENEATH) {
                Ok(directory) => fsync(directory)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Does a step.
    pub(crate) fn take(&self, number: usize, step: &Step) -> Result<(), ReviewError> {
        match self.attempt(number, step) {
            Ok(true) => Ok(()),
            Ok(false) | Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                Err(ReviewError::Conflicts(vec![inert_name(step.path())]))
            }
            Err(errno) => {
                Err(ReviewError::File { path: inert_name(step.path()).into(), source: errno.into() })
            }
        }
    }

    /// Whether it was done: what was found there was what had been compared.
    fn attempt(&self, number: usize, step: &Step) -> Result<bool, Errno> {
        let (directory, name) = reach(&self.owner, step.path())?;
        match step {
            Step::Delete { old, .. } => {
                let aside = aside(number);
                renameat_with(&directory, name, &self.place, aside.as_slice(), RenameFlags::NOREPLACE)?;
                if identity_in(&self.place, &aside)? == *old {
                    return Ok(true);
                }
                renameat_with(&self.place, aside.as_slice(), &directory, name, RenameFlags::NOREPLACE)?;
                Ok(false)
            }
            Step::RemoveDirectory { .. } => unlinkat(&directory, name, AtFlags::REMOVEDIR).map(|()| true),
            Step::MakeDirectory { .. } => {
                mkdirat(&directory, name, Mode::from_raw_mode(0o777))?;
                self.give(&directory, name)?;
                Ok(true)
            }
            Step::Replace { path, old, .. } => {
                let prepared = prepared(path);
                let exchange = || {
                    renameat_with(&self.place, prepared.as_slice(), &directory, name, RenameFlags::EXCHANGE)
                };
                exchange()?;
                if identity_in(&self.place, &prepared)? == *old {
                    return Ok(true);
                }
                exchange()?;
                Ok(false)
            }
            Step::Add { path, .. } => {
                let prepared = prepared(path);
                renameat_with(&self.place, prepared.as_slice(), &directory, name, RenameFlags::NOREPLACE)?;
                Ok(true)
            }
        }
    }

    /// What root makes belongs to whom the tree belongs.
    fn give(&self, directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&self.owner)?;
        let (user, group) = (rustix::fs::Uid::from_raw(stat.st_uid), rustix::fs::Gid::from_raw(stat.st_gid));
        rustix::fs::chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Undoes a step, if it was done.
    pub(crate) fn undo(&self, number: usize, step: &Step) -> Result<Undone, ReviewError> {
        let failed =
            |errno: Errno| ReviewError::File { path: inert_name(step.path()).into(), source: errno.into() };
        let (directory, name) = match reach(&self.owner, step.path()) {
            Ok(reached) => reached,
            // The way there was not made yet, or the owner has closed it since.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                let was_done = self.was_done(number, step).map_err(failed)?;
                return Ok(if was_done { Undone::Edited } else { Undone::Yes });
            }
            Err(errno) => return Err(failed(errno)),
        };
        self.revert(number, step, &directory, name).map_err(failed)
    }

    /// Whether a file was moved, by what lies beside the owner's tree.
    fn was_done(&self, number: usize, step: &Step) -> Result<bool, Errno> {
        let lies = |path: Vec<u8>| match identity_in(&self.place, &path) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        };
        Ok(match step {
            Step::Delete { .. } => lies(aside(number))?.is_some(),
            Step::RemoveDirectory { .. } | Step::MakeDirectory { .. } => false,
            Step::Replace { path, old, .. } => {
                lies(prepared(path))?.is_some_and(|found| found.is_same_file(old))
            }
            Step::Add { path, .. } => lies(prepared(path))?.is_none(),
        })
    }

    fn revert(&self, number: usize, step: &Step, directory: &OwnedFd, name: &[u8]) -> Result<Undone, Errno> {
        match step {
            Step::Delete { .. } => {
                let aside = aside(number);
                let back =
                    renameat_with(&self.place, aside.as_slice(), directory, name, RenameFlags::NOREPLACE);
                match back {
                    Ok(()) | Err(Errno::NOENT) => Ok(Undone::Yes),
                    Err(Errno::EXIST) => Ok(Undone::Edited),
                    Err(errno) => Err(errno),
                }
            }
            Step::RemoveDirectory { mode, .. } => {
                match mkdirat(directory, name, Mode::from_raw_mode(*mode)) {
                    Ok(()) => self.give(directory, name)?,
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                Ok(Undone::Yes)
            }
            Step::MakeDirectory { .. } => match unlinkat(directory, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
                    Ok(Undone::Yes)
                }
                Err(errno) => Err(errno),
            },
            Step::Replace { path, new, .. } => {
                let prepared = prepared(path);
                if !self.was_done(number, step)? {
                    return Ok(Undone::Yes);
                }
                if !is_untouched(directory, name, new)? {
                    return Ok(Undone::Edited);
                }
                renameat_with(&self.place, prepared.as_slice(), directory, name, RenameFlags::EXCHANGE)?;
                Ok(Undone::Yes)
            }
            Step::Add { path, new } => {
                let prepared = prepared(path);
                if !self.was_done(number, step)? {
                    return Ok(Undone::Yes);
                }
                if !is_untouched(directory, name, new)? {
                    return Ok(Undone::Edited);
                }
                renameat_with(directory, name, &self.place, prepared.as_slice(), RenameFlags::NOREPLACE)?;
                Ok(Undone::Yes)
            }
        }
    }
}

/// Whether a file is as it was put there.
fn is_untouched(directory: &OwnedFd, name: &[u8], new: &Identity) -> Result<bool, Errno> {
    match identity_in(directory, name) {
        Ok(found) => Ok(found == *new),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}
