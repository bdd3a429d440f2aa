//! Opens what is in a layer. An enemy wrote it, and may be changing it: every name is opened beneath the descriptor of
//! its directory, no link is followed, and what is no file, directory or link is never opened.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fgetxattr, flistxattr, openat2,
    readlinkat, statat,
};
use rustix::io::Errno;

/// Nothing is reached but what is there itself.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// Says that what the base has in a directory is gone unless it is in the layer.
const OPAQUE: &str = "opaque";
/// What our overlays never make: a directory or a file whose content is somewhere else.
const ELSEWHERE: [&str; 2] = ["redirect", "metacopy"];
/// What an overlay notes begins so, without and with privileges.
const NOTES: [&str; 2] = ["user.overlay.", "trusted.overlay."];

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
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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

    /// A file below it: to read, and as it is. Every part of the path is beneath it and no link.
    pub(crate) fn file(&self, path: &[u8]) -> Result<(File, Stat), Errno> {
        let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((file.into(), stat)),
            _ => Err(Errno::AGAIN),
        }
    }

    /// Where a link below it leads, and what it is.
    pub(crate) fn link(&self, path: &[u8]) -> Result<(Vec<u8>, Stat), Errno> {
        let link = self.open(path, OFlags::PATH)?;
        let stat = rustix::fs::fstat(&link)?;
        Ok((readlinkat(&link, c"", Vec::new())?.into_bytes(), stat))
    }

    /// What is at a path below it, of which no part is a link; the last one may be.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Stat, Errno> {
        rustix::fs::fstat(self.open(path, OFlags::PATH)?)
    }

    /// Whether nothing is at a path below it, or only beyond a link.
    pub(crate) fn lacks(&self, path: &[u8]) -> bool {
        matches!(self.find(path), Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
    }

    /// What an overlay has noted of it.
    pub(crate) fn notes(&self) -> Notes {
        notes(&self.descriptor)
    }

    /// What a file or a link is, without opening it.
    pub(crate) fn look(&self, name: &[u8]) -> Result<Stat, Errno> {
        statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
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

/// What an overlay has noted of a file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// What the base has here is gone unless it is in the layer.
    pub(crate) is_opaque: bool,
    /// What is here is somewhere else.
    pub(crate) is_elsewhere: bool,
}

/// Reads the notes: most have none, which one call tells.
pub(crate) fn notes(file: impl AsFd) -> Notes {
    let mut names = [0; 4096];
    let names = match flistxattr(&file, &mut names) {
        Ok(length) => names.get(..length).unwrap_or_default().to_vec(),
        // Too many to be an overlay's alone: each is asked for.
        Err(Errno::RANGE) => all_notes(),
        Err(_) => Vec::new(),
    };
    let mut notes = Notes::default();
    for name in names.split(|byte| *byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let Some(note) = NOTES.iter().find_map(|begin| name.strip_prefix(begin)) else { continue };
        let mut value = [0; 16];
        let value = match fgetxattr(&file, name, &mut value) {
            Ok(length) => value.get(..length).unwrap_or_default(),
            Err(Errno::NODATA) => continue,
            Err(_) => b"",
        };
        notes.is_opaque |= note == OPAQUE && value == b"y";
        notes.is_elsewhere |= ELSEWHERE.contains(&note);
    }
    notes
}

fn all_notes() -> Vec<u8> {
    let mut names = Vec::new();
    for begin in NOTES {
        for note in ELSEWHERE.iter().chain([&OPAQUE]) {
            names.extend_from_slice(begin.as_bytes());
            names.extend_from_slice(note.as_bytes());
            names.push(0);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_with_more_entries_than_are_taken_is_none() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let directory = Directory::top(place.path()).unwrap();
        assert_eq!(directory.entries(3).unwrap().map(|entries| entries.len()), Some(3));
        let directory = Directory::top(place.path()).unwrap();
        assert!(directory.entries(2).unwrap().is_none());
    }
}
