//! Directories: what is in one, a new one, and other names for what is in them.

use std::collections::BTreeSet;

use bytes::Bytes;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use wire::{FileAnswer, FileDone, FileEntry, FileKind, LIST_LIMIT, ListDirectory, MakeDirectory, MoveFile};

use super::failure::Failure;
use super::replies::Replies;
use super::{opening, status};

/// A page of what is in a directory. Names come in order, so that a page begins after the last name of the one
/// before whatever has been made or removed meanwhile; only as many as a page has are held at once.
pub(super) fn list(ask: &ListDirectory, replies: &mut Replies) -> Result<FileDone, Failure> {
    let failed = |errno| Failure::system(&ask.path, errno);
    let most = match ask.most {
        0 => LIST_LIMIT,
        most => most.min(LIST_LIMIT),
    };
    let mut directory = Dir::new(opening::directory(&ask.path, OFlags::RDONLY)?).map_err(failed)?;
    let mut page = BTreeSet::new();
    let mut more = false;
    while let Some(entry) = directory.read() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || (!ask.after.is_empty() && name <= &ask.after[..]) {
            continue;
        }
        page.insert(name.to_vec());
        if page.len() > most as usize {
            page.pop_last();
            more = true;
        }
    }
    let descriptor = directory.fd().map_err(failed)?;
    let entries = page.len() as u64;
    for name in page {
        // One that is gone by now is told without what it was: the next page begins after it all the same.
        let stat = status::look(descriptor, &name, AtFlags::SYMLINK_NOFOLLOW).ok();
        replies.send(FileAnswer::Entry(FileEntry { name: Bytes::from(name), stat }))?;
    }
    Ok(FileDone { entries, more, ..FileDone::default() })
}

/// A new directory.
pub(super) fn make(ask: &MakeDirectory) -> Result<FileDone, Failure> {
    let failed = |errno| Failure::system(&ask.path, errno);
    if ask.parents {
        make_parents(&ask.path)?;
    }
    match rustix::fs::mkdirat(CWD, &ask.path[..], Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) if ask.parents => {
            let found = status::look(CWD, &ask.path, AtFlags::empty()).map_err(failed)?;
            let is_directory = found.kind == i32::from(FileKind::Directory);
            return if is_directory { Ok(FileDone::default()) } else { Err(failed(Errno::EXIST)) };
        }
        made => made.map_err(failed)?,
    }
    if let Some(mode) = ask.mode {
        let directory = opening::directory(&ask.path, OFlags::RDONLY | OFlags::NOFOLLOW)?;
        rustix::fs::fchmod(directory, Mode::from_raw_mode(mode & 0o777)).map_err(failed)?;
    }
    Ok(FileDone { entries: 1, ..FileDone::default() })
}

/// All directories above a path.
fn make_parents(path: &[u8]) -> Result<(), Failure> {
    let path = &path[..path.len() - path.iter().rev().take_while(|byte| **byte == b'/').count()];
    for (index, _) in path.iter().enumerate().filter(|(index, byte)| **byte == b'/' && *index > 0) {
        let parent = &path[..index];
        match rustix::fs::mkdirat(CWD, parent, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Failure::system(parent, errno)),
        }
    }
    Ok(())
}

/// Another name.
pub(super) fn rename(ask: &MoveFile) -> Result<FileDone, Failure> {
    let flags = if ask.replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    rustix::fs::renameat_with(CWD, &ask.from[..], CWD, &ask.to[..], flags).map_err(|errno| {
        // What is there is named, else what is moved.
        let path = if errno == Errno::EXIST { &ask.to } else { &ask.from };
        Failure::system(path, errno)
    })?;
    Ok(FileDone { entries: 1, ..FileDone::default() })
}
