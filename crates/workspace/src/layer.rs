//! Opens what is in a layer. An enemy wrote it, and may be changing it: every name is opened beneath the descriptor of
//! its directory, no link is followed, and what is no file, directory or link is never opened.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fgetxattr, openat2, readlinkat, statat,
};
use rustix::io::Errno;

/// Nothing is reached but what is there itself.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// The names under which an overlay notes things, with and without privileges.
const OPAQUE: [&str; 2] = ["user.overlay.opaque", "trusted.overlay.opaque"];
/// What our overlays never make: a directory or a file whose content is somewhere else.
const ELSEWHERE: [&str; 4] = [
    "user.overlay.redirect",
    "trusted.overlay.redirect",
    "user.overlay.metacopy",
    "trusted.overlay.metacopy",
];

/// What an entry of a layer is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Not there any more.
    Whiteout,
    File,
    Link,
    Directory,
    /// A pipe, a socket or a device.
    Special,
}

/// One entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
}

/// A directory of a layer, held.
pub(crate) struct Directory {
    descriptor: OwnedFd,
}

impl Directory {
    /// The top of a layer.
    pub(crate) fn top(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self { descriptor: rustix::fs::openat(CWD, path, flags, Mode::empty())? })
    }

    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        loop {
            match openat2(&self.descriptor, path, flags, Mode::empty(), BENEATH) {
                // Something was renamed on the way.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
    }

    /// One below it.
    pub(crate) fn directory(&self, name: &[u8]) -> Result<Self, Errno> {
        Ok(Self { descriptor: self.open(name, OFlags::RDONLY | OFlags::DIRECTORY)? })
    }

    /// A file below it: to read, and as it is.
    pub(crate) fn file(&self, path: &[u8]) -> Result<(File, Stat), Errno> {
        let file = self.open(path, OFlags::RDONLY)?;
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((file.into(), stat)),
            _ => Err(Errno::AGAIN),
        }
    }

    /// Where a link leads.
    pub(crate) fn link(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        Ok(readlinkat(&self.descriptor, name, Vec::new())?.into_bytes())
    }

    /// Whether what the base has here is gone unless it is in the layer.
    pub(crate) fn is_opaque(&self) -> bool {
        OPAQUE.iter().any(|name| matches!(attribute(&self.descriptor, name).as_deref(), Some(b"y")))
    }

    /// Whether what is here is somewhere else.
    pub(crate) fn is_elsewhere(&self) -> bool {
        is_elsewhere(&self.descriptor)
    }

    /// All entries, by name, not more than `most`; none where there are more.
    pub(crate) fn entries(&self, most: u64) -> Result<Option<Vec<Entry>>, Errno> {
        let mut entries = Vec::new();
        for found in Dir::read_from(&self.descriptor)? {
            let found = found?;
            let name = found.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if entries.len() as u64 >= most {
                return Ok(None);
            }
            match self.kind(name, found.file_type()) {
                Ok(kind) => entries.push(Entry { name: name.to_vec(), kind }),
                // Gone since.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Some(entries))
    }

    fn kind(&self, name: &[u8], told: FileType) -> Result<Kind, Errno> {
        Ok(match told {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            FileType::CharacterDevice | FileType::Unknown => {
                let stat = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::CharacterDevice if stat.st_rdev == 0 => Kind::Whiteout,
                    FileType::RegularFile => Kind::File,
                    FileType::Directory => Kind::Directory,
                    FileType::Symlink => Kind::Link,
                    _ => Kind::Special,
                }
            }
            _ => Kind::Special,
        })
    }
}

/// Whether a file's content is somewhere else.
pub(crate) fn is_elsewhere(file: impl AsFd) -> bool {
    ELSEWHERE.iter().any(|name| attribute(&file, name).is_some())
}

fn attribute(file: impl AsFd, name: &str) -> Option<Vec<u8>> {
    let mut value = [0; 16];
    match fgetxattr(file, name, &mut value) {
        Ok(length) => Some(value.get(..length).unwrap_or_default().to_vec()),
        Err(Errno::RANGE) => Some(Vec::new()),
        Err(_) => None,
    }
}
