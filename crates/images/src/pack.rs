//! A directory as a layer: a root file system of the owner's, or what a sandbox wrote over its image. The second is an
//! enemy's: nothing is opened through a link, and it stands still while it is read.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use archive::{Attribute, Member, Output, What, Writer};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::unpack::{OPAQUE, Owners};

/// As deep as a directory is followed: each level holds a descriptor.
const DEPTH: usize = 128;
/// The longest list of attributes of one file.
const ATTRIBUTES: usize = 64 * 1024;
/// The highest id that anybody in an image has.
const LAST_ID: u64 = 65534;

/// Whose files are in the layer, and whether it takes anything away.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    /// Whom they belong to: whoever they belong to here, or root.
    pub owners: Owners,
    /// The id of root there; others count from it.
    pub first: u32,
    /// Whether devices 0/0 and hidden directories are an overlay's.
    pub over: Over,
}

/// What is told to each sandbox anew and is no part of an image.
const TOLD: [&[u8]; 3] = [b"etc/hostname", b"etc/hosts", b"etc/resolv.conf"];

/// Whether a directory lies over others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// It is whole by itself.
    Nothing,
    /// An overlay's upper directory.
    Layers,
}

impl Whose {
    pub(crate) const fn in_directory(owners: Owners) -> Self {
        Self { owners, first: 0, over: Over::Nothing }
    }
}

struct Packer<'a> {
    writer: Writer<'a>,
    whose: Whose,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
}

/// Packs all that is beneath a directory. What is no file, directory or link is left out.
pub fn pack(directory: impl AsFd, whose: &Whose, mut output: impl Write) -> io::Result<()> {
    let writer = Writer::new(Output::Writer(&mut output));
    let mut packer = Packer { writer, whose: *whose, links: HashMap::new() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
    packer.directory(directory, &mut Vec::new(), 0)?;
    packer.writer.finish()
}

impl Packer<'_> {
    fn directory(&mut self, directory: OwnedFd, path: &mut Vec<u8>, depth: usize) -> io::Result<()> {
        let stat = rustix::fs::fstat(&directory)?;
        let attributes = attributes(&directory)?;
        let hides = attributes.iter().any(|(name, _)| name == OPAQUE.as_bytes());
        let name = if path.is_empty() { b"./" } else { path.as_slice() };
        self.member(name, What::Directory, &stat, &attributes)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        let above = path.len();
        if hides && self.whose.over == Over::Layers {
            path.extend_from_slice(b".wh..wh..opq");
            self.empty(path)?;
            path.truncate(above);
        }
        // In the order of their names, so that the same directory is the same layer.
        let mut names = Vec::new();
        let mut listing = Dir::read_from(&directory)?;
        while let Some(entry) = listing.read() {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            path.extend_from_slice(name.to_bytes());
            if self.whose.over == Over::Layers && TOLD.contains(&path.as_slice()) {
                path.truncate(above);
                continue;
            }
            self.entry(directory.as_fd(), &name, path, depth)?;
            path.truncate(above);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> io::Result<()> {
        let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                if depth >= DEPTH {
                    return Err(io::Error::other("it is deeper than any image may be"));
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                self.directory(rustix::fs::openat(parent, name, flags, Mode::empty())?, path, depth + 1)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new())?;
                self.member(path, What::SymbolicLink(target.to_bytes()), &stat, &[])
            }
            FileType::RegularFile => self.file(parent, name, path),
            FileType::CharacterDevice if stat.st_rdev == 0 && self.whose.over == Over::Layers => {
                let at = path.len() - name.to_bytes().len();
                let gone = [&path[..at], b".wh.", name.to_bytes()].concat();
                self.empty(&gone)
            }
            _ => Ok(()),
        }
    }

    fn file(&mut self, parent: BorrowedFd<'_>, name: &CStr, path: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(());
        }
        if stat.st_nlink > 1 {
            if let Some(first) = self.links.get(&(stat.st_dev, stat.st_ino)).cloned() {
                return self.member(path, What::HardLink(&first), &stat, &[]);
            }
            self.links.insert((stat.st_dev, stat.st_ino), path.to_vec());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let attributes = attributes(&file)?;
        self.member(path, What::File(size), &stat, &attributes)?;
        if !self.writer.contents(&File::from(file), size)? {
            return Err(io::Error::other("a file in it was changed while it was read"));
        }
        Ok(())
    }

    /// A file that only its name says something by.
    fn empty(&mut self, path: &[u8]) -> io::Result<()> {
        let member = Member {
            name: path,
            what: What::File(0),
            mode: 0o644,
            uid: 0,
            gid: 0,
            modified: None,
            attributes: &[],
        };
        self.writer.member(&member)
    }

    fn member(
        &mut self,
        name: &[u8],
        what: What<'_>,
        stat: &Stat,
        attributes: &[Attribute],
    ) -> io::Result<()> {
        let (uid, gid) = match self.whose.owners {
            Owners::Kept => {
                let inside = |id: u32| {
                    id.checked_sub(self.whose.first).map_or(LAST_ID, |id| u64::from(id).min(LAST_ID))
                };
                (inside(stat.st_uid), inside(stat.st_gid))
            }
            Owners::Dropped => (0, 0),
        };
        let kept: Vec<Attribute> = attributes
            .iter()
            .filter(|(name, _)| name.starts_with(b"user.") && !name.starts_with(b"user.overlay."))
            .cloned()
            .collect();
        let mode = stat.st_mode & 0o7777;
        self.writer.member(&Member { name, what, mode, uid, gid, modified: Some(stat), attributes: &kept })
    }
}

/// The attributes of an open file, as far as the file system has any.
fn attributes(file: &OwnedFd) -> io::Result<Vec<Attribute>> {
    let mut names = vec![0; ATTRIBUTES];
    let length = match rustix::fs::flistxattr(file, &mut names) {
        Err(Errno::NOTSUP) => 0,
        length => length?,
    };
    let mut found = Vec::new();
    let mut value = vec![0; ATTRIBUTES];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        match rustix::fs::fgetxattr(file, name, &mut value) {
            Ok(length) => found.push((name.to_vec(), value[..length].to_vec())),
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(found)
}
