//! Files beneath a directory of somebody's: no link is followed on the way, nothing is waited for, sizes are bounded,
//! and that a file was read leaves no trace where the kernel allows it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A directory, held by its descriptor.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: FileType,
}

impl Directory {
    /// Opens a directory whose path has no link in it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = quietly(DIRECTORY, |flags| open(path, flags, Mode::empty()))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A directory beneath this one.
    pub(crate) fn below(&self, name: &Path) -> io::Result<Self> {
        let fd = quietly(DIRECTORY, |flags| beneath(self.fd(), name, flags))?;
        Ok(Self { fd, path: self.path.join(name) })
    }

    /// An open file beneath this one; what is no file is not opened.
    pub(crate) fn file(&self, name: &Path) -> io::Result<File> {
        let file = File::from(quietly(FILE, |flags| beneath(self.fd(), name, flags))?);
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is not a file"));
        }
        Ok(file)
    }

    /// All of a file, if it is there.
    pub(crate) fn read(&self, name: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.file(name) {
            Err(error) if is_absent(&error) => return Ok(None),
            file => file?,
        };
        read_all(file, most).map(Some)
    }

    /// What is in it.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut buffer = Vec::with_capacity(8192);
        let mut entries = Vec::new();
        let mut directory = RawDir::new(self.fd(), buffer.spare_capacity_mut());
        while let Some(entry) = directory.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                entries.push(Entry { name: name.to_vec(), kind: entry.file_type() });
            }
        }
        Ok(entries)
    }
}

/// All of an open file, up to a size that it has to keep to.
pub(crate) fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Whether nothing is there.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens a file by any path, links included, for what the owner has set for all repositories.
pub(crate) fn open_anywhere(path: &Path) -> io::Result<File> {
    Ok(File::from(quietly(FILE, |flags| rustix::fs::openat(CWD, path, flags, Mode::empty()))?))
}

fn beneath(directory: BorrowedFd<'_>, name: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // Somebody who renames meanwhile makes it fail now and then.
    for _ in 0..16 {
        match openat2(directory, name, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens without a trace in the time of last access, where that is the caller's to decide.
fn quietly(
    flags: OFlags,
    open: impl Fn(OFlags) -> rustix::io::Result<OwnedFd>,
) -> rustix::io::Result<OwnedFd> {
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}

/// Opens a directory in another one, without a trace.
pub(crate) fn open_below(parent: BorrowedFd<'_>, name: &std::ffi::CStr) -> rustix::io::Result<OwnedFd> {
    quietly(DIRECTORY, |flags| rustix::fs::openat(parent, name, flags, Mode::empty()))
}
