//! A file or a tree as a stream. The tree may be an enemy's, who changes it meanwhile: nothing is opened through a
//! link, every file is looked at again after it was opened, and a directory is held by its descriptor.

mod links;
mod output;
mod sink;
mod writer;

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::block::Kind;
use crate::error::{Action, PackError};
use crate::limits::Limits;
use crate::moment::Moment;
use crate::name::Name;
use links::Links;
pub use output::Output;
use sink::{Contents, Outgoing, Sink};
pub use writer::{Member, What, Writer};

/// As deep as a tree is followed: each level holds a descriptor.
const DEPTH: usize = 256;

/// The longest name that the kernel takes, its NUL not counted.
const NAME_LENGTH: usize = 4095;

/// Something that went otherwise than one might think, of a file that was packed or left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark<'a> {
    /// Its name in the archive.
    pub path: &'a [u8],
    /// What happened.
    pub why: Why,
}

/// What can be remarked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Left out: a named pipe.
    Fifo,
    /// Left out: a socket.
    Socket,
    /// Left out: a device.
    Device,
    /// Left out: it was removed or replaced meanwhile.
    Vanished,
    /// Left out: it cannot be opened or read.
    Unreadable(Errno),
    /// Left out: its name is longer or deeper than any program could use.
    TooDeep,
    /// In the archive with zeros at its end: it became shorter or unreadable while it was read.
    Shrank,
    /// In the archive as long as it was at first: it became longer while it was read.
    Grew,
}

/// What an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Packs what `name` is beneath `directory`: a file, a link, or a directory and all beneath it. The entries are
/// named from the last part of `name` on. `.` is the directory itself, whose entries have no name before theirs.
///
/// What is no file, directory or link is left out, as is what cannot be read; `remark` hears of it.
pub fn pack(
    directory: impl AsFd,
    name: &[u8],
    output: Output<'_>,
    remark: &mut dyn FnMut(Remark<'_>),
) -> Result<Packed, PackError> {
    let limits = Limits { bytes: 0, entries: 0, name_length: NAME_LENGTH, depth: DEPTH };
    let parsed = Name::parse(name, &limits).map_err(|why| PackError::Name { name: name.to_vec(), why })?;
    let mut packer =
        Packer { sink: Sink::new(output), links: Links::default(), remark, packed: Packed::default() };
    packer.top(directory.as_fd(), &parsed)?;
    packer.sink.finish().map_err(PackError::Output)?;
    Ok(packer.packed)
}

/// What happened to an entry short of an error that ends all.
type Outcome<T> = Result<Result<T, Why>, PackError>;

struct Packer<'a, 'o> {
    sink: Sink<'o>,
    links: Links,
    remark: &'a mut dyn FnMut(Remark<'_>),
    packed: Packed,
}

/// A directory that is being read, and how long the name of what it is in was.
struct Level {
    directory: Dir,
    name_length: usize,
}

impl Packer<'_, '_> {
    /// What was asked for: it must be there, and be something.
    fn top(&mut self, directory: BorrowedFd<'_>, name: &Name) -> Result<(), PackError> {
        let system = |action| {
            let name = name.as_bytes().to_vec();
            move |errno| PackError::System { action, name, errno }
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let (parent, last) = name.split();
        let parent = if parent.is_empty() { b"." } else { parent };
        // To pass through a directory is not to read it.
        let how = if name.is_root() { OFlags::RDONLY } else { OFlags::PATH };
        let flags = how | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::openat2(directory, parent, flags, Mode::empty(), resolve)
            .map_err(system(Action::Open))?;
        if name.is_root() {
            return self.tree(Dir::new(parent).map_err(system(Action::Read))?, &mut Vec::new());
        }
        let mut path = last.to_vec();
        let stat =
            rustix::fs::statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW).map_err(system(Action::Open))?;
        match self.entry(parent.as_fd(), last, FileType::from_raw_mode(stat.st_mode), &mut path)? {
            Ok(None) => Ok(()),
            Ok(Some(directory)) => self.tree(directory, &mut path),
            Err(Why::Fifo | Why::Socket | Why::Device) => Err(PackError::Special { name: path }),
            Err(Why::Unreadable(errno)) => Err(system(Action::Open)(errno)),
            Err(_) => Err(system(Action::Open)(Errno::NOENT)),
        }
    }

    /// All that is beneath a directory whose own entry is written. `path` is its name, with a slash at the end.
    fn tree(&mut self, directory: Dir, path: &mut Vec<u8>) -> Result<(), PackError> {
        let mut levels = vec![Level { directory, name_length: path.len() }];
        while let Some(level) = levels.last_mut() {
            path.truncate(level.name_length);
            let (name, kind) = match level.directory.read() {
                Some(Ok(entry)) => (entry.file_name().to_owned(), entry.file_type()),
                Some(Err(errno)) => {
                    (self.remark)(Remark { path, why: Why::Unreadable(errno) });
                    levels.pop();
                    continue;
                }
                None => {
                    levels.pop();
                    continue;
                }
            };
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            path.extend_from_slice(name.to_bytes());
            match self.beneath(&levels, &name, kind, path)? {
                Ok(None) => {}
                Ok(Some(directory)) => levels.push(Level { directory, name_length: path.len() }),
                Err(why) => (self.remark)(Remark { path, why }),
            }
        }
        Ok(())
    }

    /// Packs an entry of the deepest of the directories that are being read.
    fn beneath(
        &mut self,
        levels: &[Level],
        name: &CStr,
        kind: FileType,
        path: &mut Vec<u8>,
    ) -> Outcome<Option<Dir>> {
        if levels.len() >= DEPTH || path.len() >= NAME_LENGTH {
            return Ok(Err(Why::TooDeep));
        }
        match levels.last().map(|level| level.directory.fd()) {
            Some(Ok(parent)) => self.entry(parent, name.to_bytes(), kind, path),
            Some(Err(errno)) => Ok(Err(Why::Unreadable(errno))),
            None => Ok(Err(Why::Vanished)),
        }
    }

    /// Packs one entry of a directory. A directory is given back to be read, with a slash after its name.
    fn entry(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        kind: FileType,
        path: &mut Vec<u8>,
    ) -> Outcome<Option<Dir>> {
        let kind = match kind {
            FileType::Unknown => match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(errno) => return Ok(Err(unopened(errno))),
            },
            kind => kind,
        };
        match kind {
            FileType::RegularFile => Ok(self.file(parent, name, path)?.map(|()| None)),
            FileType::Directory => Ok(self.directory(parent, name, path)?.map(Some)),
            FileType::Symlink => Ok(self.symbolic_link(parent, name, path)?.map(|()| None)),
            FileType::Fifo => Ok(Err(Why::Fifo)),
            FileType::Socket => Ok(Err(Why::Socket)),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Err(Why::Device)),
            FileType::Unknown => Ok(Err(Why::Vanished)),
        }
    }

    fn file(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Outcome<()> {
        let (file, stat) = match open(parent, name, OFlags::NONBLOCK | OFlags::NOCTTY, FileType::RegularFile)
        {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(first) = self.links.first_name(&stat, path) {
            self.write(&Outgoing { kind: Kind::HardLink, link: &first, size: 0, ..outgoing(path, &stat) })?;
            return Ok(Ok(()));
        }
        let entry = outgoing(path, &stat);
        self.write(&entry)?;
        let contents = self.sink.contents(&File::from(file), entry.size).map_err(PackError::Output)?;
        self.packed.bytes += entry.size;
        let why = match contents {
            Contents::Whole => return Ok(Ok(())),
            Contents::Shrank | Contents::Failed(_) => Why::Shrank,
            Contents::Grew => Why::Grew,
        };
        (self.remark)(Remark { path, why });
        Ok(Ok(()))
    }

    fn directory(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &mut Vec<u8>) -> Outcome<Dir> {
        let (directory, stat) = match open(parent, name, OFlags::DIRECTORY, FileType::Directory) {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        let directory = match Dir::new(directory) {
            Ok(directory) => directory,
            Err(errno) => return Ok(Err(Why::Unreadable(errno))),
        };
        path.push(b'/');
        self.write(&Outgoing { kind: Kind::Directory, size: 0, ..outgoing(path, &stat) })?;
        Ok(Ok(directory))
    }

    fn symbolic_link(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Outcome<()> {
        let read = || {
            let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok((stat, rustix::fs::readlinkat(parent, name, Vec::new())?))
        };
        match read() {
            Ok((stat, target)) => {
                let link = target.to_bytes();
                let entry = outgoing(path, &stat);
                self.write(&Outgoing { kind: Kind::SymbolicLink, link, mode: 0o777, size: 0, ..entry })?;
                Ok(Ok(()))
            }
            Err(errno) => Ok(Err(unopened(errno))),
        }
    }

    fn write(&mut self, entry: &Outgoing<'_>) -> Result<(), PackError> {
        self.packed.entries += 1;
        self.sink.header(entry).map_err(PackError::Output)
    }
}

/// A file's entry, from what the kernel says of it.
fn outgoing<'a>(name: &'a [u8], stat: &Stat) -> Outgoing<'a> {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let (kind, modified) = (Kind::File, Moment::of(stat));
    // The owner is nobody's business on the other side, where whoever unpacks owns what it makes.
    Outgoing { kind, name, link: b"", mode: stat.st_mode, size, modified, uid: 0, gid: 0, attributes: &[] }
}

/// Opens an entry without following it and without waiting, and makes sure that it is still of the kind it was.
fn open(parent: BorrowedFd<'_>, name: &[u8], flags: OFlags, kind: FileType) -> Result<(OwnedFd, Stat), Why> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(unopened)?;
    let stat = rustix::fs::fstat(&file).map_err(Why::Unreadable)?;
    if FileType::from_raw_mode(stat.st_mode) == kind { Ok((file, stat)) } else { Err(Why::Vanished) }
}

/// Why something that was there just now cannot be opened.
fn unopened(errno: Errno) -> Why {
    match errno {
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::INVAL | Errno::NXIO => Why::Vanished,
        errno => Why::Unreadable(errno),
    }
}
