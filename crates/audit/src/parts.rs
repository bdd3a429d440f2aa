//! The files of a log, and which comes after which: `<id>.1.jsonl`, `<id>.2.jsonl` and so on, and `<id>.jsonl`, the
//! newest. On the owner's side; the writer never sees a path. Never follows a link.
//!
//! A part becomes an older one by getting its number as a second name, and loses its old name when the new part takes
//! it. So the newest part is always there, and a number, once it is there, is always the same file: readers need no
//! lock.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use policy::SandboxId;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::ReadError;
use crate::turn::PARTS_LIMIT;

/// A file of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An older one; the first is 1.
    Numbered(u64),
    /// The one that is written.
    Newest,
}

impl Part {
    /// What its file is called.
    #[must_use]
    pub fn file_name(self, id: &SandboxId) -> String {
        match self {
            Self::Numbered(number) => format!("{id}.{number}.jsonl"),
            Self::Newest => format!("{id}.jsonl"),
        }
    }

    /// Whose part a file name is, and which.
    pub(crate) fn of_file_name(name: &str) -> Option<(SandboxId, Self)> {
        let stem = name.strip_suffix(".jsonl")?;
        let Some((id, digits)) = stem.split_once('.') else {
            return Some((stem.parse().ok()?, Self::Newest));
        };
        let number = crate::text::count(digits)?;
        Some((id.parse().ok()?, Self::Numbered(number)))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbered(number) => write!(formatter, "part {number}"),
            Self::Newest => formatter.write_str("the newest part"),
        }
    }
}

/// A directory of logs, held open, so that all parts come from the same one.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
const WRITE: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::NONBLOCK);

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        let failed = |error: Errno| failed("open", path.to_owned(), error);
        Ok(Self { descriptor: opened.map_err(failed)?, path: path.to_owned() })
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn failed(&self, what: &'static str, name: &str) -> impl Fn(Errno) -> ReadError {
        let path = self.path_of(name);
        move |error| failed(what, path.clone(), error)
    }

    /// Opens a regular file, or says that there is nothing of that name. Whatever else stands there is refused, without
    /// waiting for it as one would for a pipe.
    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<File>, ReadError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => {
                return Err(ReadError::NotAFile(self.path_of(name)));
            }
            Err(error) => return Err(failed("open", self.path_of(name), error)),
        };
        let metadata = file.metadata().map_err(|source| io_failed("open", self.path_of(name), source))?;
        if metadata.is_file() { Ok(Some(file)) } else { Err(ReadError::NotAFile(self.path_of(name))) }
    }

    /// Opens a part for reading, if it is there.
    pub(crate) fn part(&self, id: &SandboxId, part: Part) -> Result<Option<File>, ReadError> {
        self.open_file(&part.file_name(id), READ)
    }

    /// Every part in the directory, whoever's. Names that are none are passed over.
    pub(crate) fn parts(&self) -> Result<Vec<(SandboxId, Part)>, ReadError> {
        let listed = rustix::fs::Dir::read_from(&self.descriptor).map_err(self.failed("list", ""))?;
        let mut parts = Vec::new();
        for entry in listed {
            let entry = entry.map_err(self.failed("list", ""))?;
            parts.extend(entry.file_name().to_str().ok().and_then(Part::of_file_name));
        }
        Ok(parts)
    }

    /// The numbers of a log's older parts, in order. They are looked for one by one, and a gap as wide as the most that
    /// there may be is the end: a listing of all logs takes as long as there are many, and every run would wait for it.
    pub(crate) fn numbers(&self, id: &SandboxId) -> Result<Vec<u64>, ReadError> {
        let mut numbers: Vec<u64> = Vec::new();
        let mut number = 0;
        while number < numbers.last().copied().unwrap_or_default() + PARTS_LIMIT as u64 {
            number += 1;
            let name = Part::Numbered(number).file_name(id);
            match rustix::fs::statat(&self.descriptor, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => numbers.push(number),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(self.failed("look at", &name)(error)),
            }
        }
        Ok(numbers)
    }

    /// Removes a file, and only a file: not a directory, and of a link neither itself nor what it leads to.
    pub(crate) fn remove_file(&self, name: &str) -> Result<(), ReadError> {
        let stat = match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat.map_err(self.failed("look at", name))?,
        };
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(ReadError::NotAFile(self.path_of(name)));
        }
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()).map_err(self.failed("remove", name))
    }
}

fn failed(what: &'static str, path: PathBuf, error: Errno) -> ReadError {
    io_failed(what, path, error.into())
}

pub(crate) fn io_failed(what: &'static str, path: PathBuf, source: io::Error) -> ReadError {
    ReadError::Io { what, path, source }
}

/// Whether two descriptors are of one file.
pub(crate) fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// What a part is called until it takes the newest one's name. No part is called so, and a leftover is harmless.
pub(crate) fn unborn_name(id: &SandboxId) -> String {
    format!(".{id}.jsonl.new")
}

/// Opens the newest part of a log for a [`Writer`](crate::Writer), and makes it where there is none.
pub fn open(directory: &Path, id: &SandboxId) -> Result<OwnedFd, ReadError> {
    let name = Part::Newest.file_name(id);
    let file = Directory::open(directory)?.open_file(&name, WRITE | OFlags::CREATE)?;
    Ok(file.ok_or_else(|| ReadError::NoLog(directory.join(name)))?.into())
}

/// Begins a new part, for [`Writer::go_on`](crate::Writer::go_on): the newest one gets the next number, and an empty
/// one takes its name. Where the newest is still empty there is nothing to begin, and it is opened once more. To be
/// called by one process at a time: the sandbox's keeper, by [`next_part`](crate::next_part()).
pub fn begin_part(directory: &Path, id: &SandboxId) -> Result<OwnedFd, ReadError> {
    let held = Directory::open(directory)?;
    let newest = Part::Newest.file_name(id);
    let Some(file) = held.open_file(&newest, READ)? else { return open(directory, id) };
    let of_newest = |source| io_failed("look at", held.path_of(&newest), source);
    if file.metadata().map_err(of_newest)?.len() == 0 {
        return open(directory, id);
    }
    let last = held.numbers(id)?.last().copied().unwrap_or_default();
    let numbered = held.part(id, Part::Numbered(last))?;
    // Whoever tried last may have been killed between the two names.
    let has_number = numbered.map(|numbered| is_same(&numbered, &file)).transpose().map_err(of_newest)?;
    let at = &held.descriptor;
    if has_number != Some(true) {
        let name = Part::Numbered(last.saturating_add(1)).file_name(id);
        rustix::fs::linkat(at, &newest, at, &name, AtFlags::empty()).map_err(held.failed("make", &name))?;
    }
    let unborn = unborn_name(id);
    held.remove_file(&unborn)?;
    let part = held.open_file(&unborn, WRITE | OFlags::CREATE | OFlags::EXCL)?;
    rustix::fs::renameat(at, &unborn, at, &newest).map_err(held.failed("make", &newest))?;
    Ok(part.ok_or_else(|| ReadError::NoLog(held.path_of(&newest)))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_exact() {
        let id: SandboxId = "0123456789ab".parse().unwrap();
        for part in [Part::Newest, Part::Numbered(1), Part::Numbered(907)] {
            assert_eq!(Part::of_file_name(&part.file_name(&id)), Some((id.clone(), part)));
        }
        for name in [
            "0123456789ab.jsonl.new",
            "0123456789ab.0.jsonl",
            "0123456789ab.01.jsonl",
            "0123456789ab.+1.jsonl",
            "0123456789ab..jsonl",
            "0123456789ab.1.1.jsonl",
            ".0123456789ab.jsonl",
            "0123456789ab",
            "notes.jsonl",
            ".jsonl",
        ] {
            assert_eq!(Part::of_file_name(name), None, "{name}");
        }
        assert_eq!(Part::of_file_name(&unborn_name(&id)), None);
    }
}
