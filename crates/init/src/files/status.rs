//! What the kernel says of a file.

use bytes::Bytes;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, FileType, Stat};
use rustix::io::Errno;
use wire::{FileAnswer, FileDone, FileKind, FileStat, StatFile};

use super::failure::Failure;
use super::replies::Replies;

/// Answers the question.
pub(super) fn answer(ask: &StatFile, replies: &mut Replies) -> Result<FileDone, Failure> {
    let flags = if ask.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let found = look(CWD, &ask.path, flags).map_err(|errno| Failure::system(&ask.path, errno))?;
    replies.send(FileAnswer::Stat(found))?;
    Ok(FileDone::default())
}

/// What a name in a directory is.
pub(super) fn look(directory: impl AsFd, name: &[u8], flags: AtFlags) -> Result<FileStat, Errno> {
    let directory = directory.as_fd();
    let found = rustix::fs::statat(directory, name, flags)?;
    let mut stat = describe(&found);
    if stat.kind == i32::from(FileKind::SymbolicLink) {
        // It may have become something else in between; then it leads nowhere.
        let target = rustix::fs::readlinkat(directory, name, Vec::new());
        stat.target = target.map(|target| Bytes::from(target.into_bytes())).unwrap_or_default();
    }
    Ok(stat)
}

/// The same in the words of the reply.
pub(super) fn describe(stat: &Stat) -> FileStat {
    FileStat {
        kind: kind(FileType::from_raw_mode(stat.st_mode)).into(),
        mode: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_seconds: stat.st_mtime,
        modified_nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        uid: stat.st_uid,
        gid: stat.st_gid,
        inode: stat.st_ino,
        names: widened(stat.st_nlink),
        target: Bytes::new(),
    }
}

/// Not every architecture counts names in the same width.
fn widened(number: impl Into<u64>) -> u64 {
    number.into()
}

fn kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::SymbolicLink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        FileType::Unknown => FileKind::Unknown,
    }
}
