//! The directory that a layer is unpacked into: every directory is opened from the top without a link on the way, and
//! every file is made new. Nobody else writes there.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use archive::{Action, Content, Entry, Limit, Name, UnpackError, Way};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use super::Owners;
use super::whiteout::Whiteout;
use crate::weaken::Guard;

/// What says to an overlay in a user namespace that a directory hides those below it.
pub(crate) const OPAQUE: &str = "user.overlay.opaque";

/// Most bytes of directories that are remembered until the end.
const KEPT: usize = 64 << 20;
/// What a remembered directory costs besides its name.
const OVERHEAD: usize = 128;

/// What is made beneath one directory.
pub(super) struct Tree<'a> {
    way: Way<'a>,
    owners: Owners,
    /// Directories that get their modes and times when nothing is made in them any more.
    unsettled: Vec<Entry>,
    kept: usize,
}

impl<'a> Tree<'a> {
    pub(super) const fn new(root: BorrowedFd<'a>, owners: Owners) -> Self {
        Self { way: Way::new(root, open_directory), owners, unsettled: Vec::new(), kept: 0 }
    }

    /// A new, empty file in the place of whatever had its name.
    pub(super) fn file(&mut self, entry: &Entry) -> Result<OwnedFd, UnpackError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.make(&entry.name, Action::Create, |parent, last| {
            rustix::fs::openat(parent, last, flags, Mode::RUSR | Mode::WUSR)
        })
    }

    /// Gives a file what an open one still lacks: owner first, as a change of owner takes rights away.
    pub(super) fn finish_file(&self, file: &OwnedFd, entry: &Entry) -> Result<(), UnpackError> {
        self.settle_file(file, entry).map_err(system(Action::Settle, &entry.name))
    }

    fn settle_file(&self, file: &OwnedFd, entry: &Entry) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner(entry) {
            rustix::fs::fchown(file, Some(uid), Some(gid))?;
        }
        for (name, value) in &entry.attributes {
            rustix::fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty())?;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(entry.mode))?;
        rustix::fs::futimens(file, &entry.modified.timestamps())
    }

    pub(super) fn symbolic_link(&mut self, entry: &Entry, target: &[u8]) -> Result<(), UnpackError> {
        let owner = self.owner(entry);
        self.make(&entry.name, Action::Link, |parent, last| {
            rustix::fs::symlinkat(target, parent, last)?;
            if let Some((uid, gid)) = owner {
                rustix::fs::chownat(parent, last, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            rustix::fs::utimensat(parent, last, &entry.modified.timestamps(), AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// A second name for a file or link of this layer. Nothing else is beneath the directory.
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
        let found = stat(directory.as_fd(), last).map_err(|_| foreign())?;
        if is_directory(&found) || is_whiteout(&found) {
            return Err(foreign());
        }
        self.make(name, Action::Link, |parent, new| {
            rustix::fs::linkat(&directory, last, parent, new, AtFlags::empty())
        })
    }

    /// A directory; its mode and time wait until everything in it is made.
    pub(super) fn directory(&mut self, entry: &Entry) -> Result<(), UnpackError> {
        let name = &entry.name;
        self.kept += OVERHEAD + name.as_bytes().len();
        self.kept += entry.attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if self.kept > KEPT {
            return Err(UnpackError::Limit { name: name.as_bytes().to_vec(), limit: Limit::Directories });
        }
        if !name.is_root() {
            let hides = self.make(name, Action::MakeDirectory, |parent, last| match stat(parent, last) {
                Ok(found) if is_directory(&found) => Ok(false),
                // What was taken away comes back as a directory, and what was below it stays away.
                Ok(found) if is_whiteout(&found) => {
                    rustix::fs::unlinkat(parent, last, AtFlags::empty())?;
                    rustix::fs::mkdirat(parent, last, Mode::RWXU).map(|()| true)
                }
                _ => rustix::fs::mkdirat(parent, last, Mode::RWXU).map(|()| false),
            })?;
            if hides {
                self.hide_below(name.as_bytes(), name)?;
            }
        }
        let Entry { mode, uid, gid, modified, .. } = *entry;
        let attributes = entry.attributes.clone();
        let content = Content::Directory;
        self.unsettled.push(Entry { name: name.clone(), mode, uid, gid, modified, attributes, content });
        Ok(())
    }

    /// Takes away what is below.
    pub(super) fn take_away(&mut self, name: &Name, whiteout: Whiteout) -> Result<(), UnpackError> {
        let gone = match whiteout {
            Whiteout::Nothing => return Ok(()),
            Whiteout::All => {
                self.way.enter(name)?;
                return self.hide_below(name.split().0, name);
            }
            Whiteout::One(gone) => gone,
        };
        self.way.enter(name)?;
        let parent = self.way.parent(name)?;
        match stat(parent, &gone) {
            // The layer has one of its own, which stays and hides what is below.
            Ok(found) if is_directory(&found) => {
                let path = [name.split().0, b"/", gone.as_slice()].concat();
                let path = path.strip_prefix(b"/").unwrap_or(&path);
                self.hide_below(path, name)
            }
            Ok(_) => Ok(()),
            Err(_) => {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(parent, &gone, FileType::CharacterDevice, mode, 0)
                    .map_err(system(Action::Create, name))
            }
        }
    }

    fn hide_below(&self, directory: &[u8], name: &Name) -> Result<(), UnpackError> {
        self.way
            .open(directory)
            .and_then(|directory| rustix::fs::fsetxattr(&directory, OPAQUE, b"y", XattrFlags::empty()))
            .map_err(system(Action::Settle, name))
    }

    /// Gives all directories their owners, modes and times, the deepest first: afterwards one may be closed to us.
    pub(super) fn settle(&mut self) -> Result<(), UnpackError> {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        // What is said last of a directory counts, and a stable order keeps it last.
        unsettled.sort_by_key(|entry| std::cmp::Reverse(entry.name.depth()));
        for entry in unsettled {
            self.way
                .open(entry.name.as_bytes())
                .and_then(|directory| self.settle_file(&directory, &entry))
                .map_err(system(Action::Settle, &entry.name))?;
        }
        Ok(())
    }

    /// Whom an entry is given to, where it is not whoever unpacks anyway.
    fn owner(&self, entry: &Entry) -> Option<(Uid, Gid)> {
        let number = |id: u64| u32::try_from(id).unwrap_or(0);
        let is_ours = entry.uid == 0 && entry.gid == 0;
        (self.owners == Owners::Kept && !is_ours)
            .then(|| (Uid::from_raw(number(entry.uid)), Gid::from_raw(number(entry.gid))))
    }

    /// Makes something under a name in its directory, which is made where it is missing. What has the name is
    /// removed, a directory that is not empty excepted.
    fn make<T>(
        &mut self,
        name: &Name,
        action: Action,
        make: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, UnpackError> {
        self.way.enter(name)?;
        let (parent, last) = (self.way.parent(name)?, name.split().1);
        let made = match make(parent, last) {
            Err(Errno::EXIST) => {
                let kind = stat(parent, last).map_err(system(Action::Replace, name))?;
                let flags = if is_directory(&kind) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                rustix::fs::unlinkat(parent, last, flags).map_err(system(Action::Replace, name))?;
                make(parent, last)
            }
            made => made,
        };
        made.map_err(system(action, name))
    }
}

/// Opens a directory beneath another with no link on the way, as whoever opens it needs it.
fn open_directory(root: BorrowedFd<'_>, directory: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if Guard::Beneath.stands() {
        return archive::open_beneath(root, directory, flags);
    }
    let directory = if directory.is_empty() { b"." } else { directory };
    rustix::fs::openat(root, directory, flags, Mode::empty())
}

fn stat(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == 0
}

/// Names what was being done.
pub(super) fn system(action: Action, name: &Name) -> impl FnOnce(Errno) -> UnpackError {
    let name = name.as_bytes().to_vec();
    move |errno| UnpackError::System { action, name, errno }
}
