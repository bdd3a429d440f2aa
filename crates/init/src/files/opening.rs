//! Opening regular files, and nothing else, without waiting.

use std::fs::File;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use wire::FileCode;

use super::failure::Failure;

/// Opens a regular file. A pipe with nobody at its other end, or a device, would hold us up otherwise.
pub(super) fn regular(path: &[u8], flags: OFlags) -> Result<(File, Stat), Failure> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // What a new file gets is what the umask leaves of this.
    let file = match rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o666)) {
        // A pipe that nobody reads, a socket or a device without a driver.
        Err(Errno::NXIO) => return Err(not_regular(path)),
        opened => opened.map_err(|errno| Failure::system(path, errno))?,
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| Failure::system(path, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(file), stat)),
        FileType::Directory => Err(Failure::system(path, Errno::ISDIR)),
        _ => Err(not_regular(path)),
    }
}

/// Opens a directory to read or, with `OFlags::PATH`, to pass through.
pub(super) fn directory(path: &[u8], flags: OFlags) -> Result<rustix::fd::OwnedFd, Failure> {
    rustix::fs::openat(CWD, path, flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Failure::system(path, errno))
}

fn not_regular(path: &[u8]) -> Failure {
    Failure::new(FileCode::Refused, path).with_detail("this is no regular file")
}
