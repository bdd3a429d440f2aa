//! The directory that an archive is unpacked into. Somebody else may change it meanwhile: every directory is opened
//! from the top without a link on the way, and every file is made new, under a name that was free.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::way::{Way, open_beneath};
use crate::error::{Action, UnpackError};
use crate::limits::Limit;
use crate::moment::Moment;
use crate::name::Name;

/// How often something that stands in the way is removed before it is believed that somebody puts it there.
const ATTEMPTS: usize = 16;

/// Most bytes of directories that are remembered until the end.
const KEPT: usize = 64 * 1024 * 1024;

/// What a remembered directory costs besides its name.
const OVERHEAD: usize = 64;

/// A directory that gets its mode and time when nothing is made in it any more.
#[derive(Debug)]
struct Unsettled {
    name: Name,
    is_new: bool,
    mode: u32,
    modified: Moment,
}

/// What is made beneath one directory.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    root: BorrowedFd<'a>,
    way: Way<'a>,
    /// The files made here, by device and inode: the only ones that a link may lead to.
    written: HashSet<(u64, u64)>,
    unsettled: Vec<Unsettled>,
    kept: usize,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, way: Way::new(root, passage), written: HashSet::new(), unsettled: Vec::new(), kept: 0 }
    }

    /// A new, empty file in the place of whatever had its name.
    pub(super) fn file(&mut self, name: &Name, mode: u32) -> Result<OwnedFd, UnpackError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.make(name, Action::Create, |parent, last| {
            rustix::fs::openat(parent, last, flags, Mode::from_raw_mode(mode))
        })?;
        let stat = rustix::fs::fstat(&file).map_err(system(Action::Create, name))?;
        if stat.st_mode & 0o7777 != mode {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::fchmod(&file, mode).map_err(system(Action::Settle, name))?;
        }
        self.written.insert((stat.st_dev, stat.st_ino));
        Ok(file)
    }

    /// A symbolic link in the place of whatever had its name.
    pub(super) fn symbolic_link(
        &mut self,
        name: &Name,
        target: &[u8],
        time: Moment,
    ) -> Result<(), UnpackError> {
        self.make(name, Action::Link, |parent, last| {
            rustix::fs::symlinkat(target, parent, last)?;
            // Where somebody has replaced it by now, their link or file has another time and nothing else.
            match rustix::fs::utimensat(parent, last, &time.timestamps(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) | Ok(()) => Ok(()),
                Err(errno) => Err(errno),
            }
        })
    }

    /// A second name for a file that was made here.
    pub(super) fn hard_link(&mut self, name: &Name, target: &Name) -> Result<(), UnpackError> {
        let foreign = || UnpackError::ForeignLink {
            name: name.as_bytes().to_vec(),
            target: target.as_bytes().to_vec(),
        };
        if target.is_root() || name == target {
            return Err(foreign());
        }
        let (directory, last) = target.split();
        let directory = self.way.open(directory).map_err(|_| foreign())?;
        let file = stat(directory.as_fd(), last).map_err(|_| foreign())?;
        let is_file = FileType::from_raw_mode(file.st_mode).is_file();
        if !is_file || !self.written.contains(&(file.st_dev, file.st_ino)) {
            return Err(foreign());
        }
        self.make(name, Action::Link, |parent, new| {
            rustix::fs::linkat(&directory, last, parent, new, AtFlags::empty())
        })?;
        // It may have been replaced between the look and the link. Then what was linked is not ours to keep.
        let (parent, new) = (self.way.parent(name)?, name.split().1);
        match stat(parent, new) {
            Ok(linked) if (linked.st_dev, linked.st_ino) == (file.st_dev, file.st_ino) => Ok(()),
            Ok(_) => {
                let _ = rustix::fs::unlinkat(parent, new, AtFlags::empty());
                Err(changed(name))
            }
            Err(_) => Err(changed(name)),
        }
    }

    /// A directory: the one that is there, or a new one. Its mode and time wait for the end.
    pub(super) fn directory(&mut self, name: &Name, mode: u32, modified: Moment) -> Result<(), UnpackError> {
        // The top itself belongs to whoever named it.
        if name.is_root() {
            return Ok(());
        }
        self.kept += name.as_bytes().len() + OVERHEAD;
        if self.kept > KEPT {
            return Err(UnpackError::Limit { name: name.as_bytes().to_vec(), limit: Limit::Directories });
        }
        let is_new = self.make(name, Action::MakeDirectory, |parent, last| {
            match rustix::fs::mkdirat(parent, last, Mode::RWXU) {
                Err(Errno::EXIST) if stat(parent, last).is_ok_and(|found| is_directory(&found)) => Ok(false),
                made => made.map(|()| true),
            }
        })?;
        self.unsettled.push(Unsettled { name: name.clone(), is_new, mode, modified });
        Ok(())
    }

    /// Gives all directories their modes and times, the deepest first: afterwards one may be closed to us.
    pub(super) fn settle(&mut self) -> Result<(), UnpackError> {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.sort_by_key(|directory| std::cmp::Reverse(directory.name.depth()));
        let mut outcome = Ok(());
        for Unsettled { name, is_new, mode, modified } in unsettled {
            let settled = open_beneath(self.root, name.as_bytes(), OFlags::DIRECTORY | OFlags::CLOEXEC)
                .and_then(|directory| {
                    rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))?;
                    rustix::fs::futimens(&directory, &modified.timestamps())
                });
            let settled = match settled {
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Err(changed(&name)),
                // One that was there, and is somebody else's.
                Err(Errno::PERM | Errno::ACCESS | Errno::ROFS) if !is_new => Ok(()),
                settled => settled.map_err(system(Action::Settle, &name)),
            };
            outcome = outcome.and(settled);
        }
        outcome
    }

    /// Makes something under a name in its directory, which is made where it is missing. What has the name is
    /// removed, a directory excepted.
    fn make<T>(
        &mut self,
        name: &Name,
        action: Action,
        make: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, UnpackError> {
        self.way.enter(name)?;
        let (parent, last) = (self.way.parent(name)?, name.split().1);
        let mut replaced = None;
        for _ in 0..ATTEMPTS {
            match make(parent, last) {
                Ok(made) => {
                    if let Some(file) = replaced {
                        // Its number may come back as that of a file which is not ours.
                        self.written.remove(&file);
                    }
                    return Ok(made);
                }
                Err(Errno::EXIST) => {
                    let found = stat(parent, last).ok().filter(|found| found.st_nlink == 1);
                    replaced = found.map(|found| (found.st_dev, found.st_ino));
                    match rustix::fs::unlinkat(parent, last, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(errno) => return Err(system(Action::Replace, name)(errno)),
                    }
                }
                Err(errno) => return Err(system(action, name)(errno)),
            }
        }
        Err(changed(name))
    }
}

/// A directory on its way to a file; nothing in it needs to be read.
fn passage(root: BorrowedFd<'_>, directory: &[u8]) -> Result<OwnedFd, Errno> {
    open_beneath(root, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

fn stat(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

fn changed(name: &Name) -> UnpackError {
    UnpackError::Changed { name: name.as_bytes().to_vec() }
}

/// Names what was being done.
pub(super) fn system(action: Action, name: &Name) -> impl FnOnce(Errno) -> UnpackError {
    let name = name.as_bytes().to_vec();
    move |errno| UnpackError::System { action, name, errno }
}
