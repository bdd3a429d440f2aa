//! A stream as a tree. The stream is an enemy's, and so may be what else happens in the tree meanwhile.

mod entries;
mod pour;
mod source;
mod tree;
mod way;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::error::{Action, UnpackError};
use crate::limits::Limits;
use crate::name::{Name, NameError};
pub use entries::{Content, Entries, Entry};
pub use pour::Pour;
use source::Source;
use tree::{Tree, system};
pub use way::{Open, Way, open_beneath};

/// From this size on it is worth it to ask the kernel to move a file itself.
const LARGE: u64 = 1024 * 1024;

/// What becomes of the first part of every name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top<'a> {
    /// It stays, and the archive decides what is touched in the directory.
    Kept,
    /// It is this one, so that nothing else in the directory is touched whatever the archive says. A plain name.
    Named(&'a [u8]),
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Unpacks a tar stream beneath `directory`, to the stream's end. Files and links take the place of what had their
/// names; directories that are there stay. Everything belongs to the caller, and no file is set-user-id.
///
/// What was made before an error stays.
pub fn unpack(
    input: impl Read,
    directory: impl AsFd,
    top: Top<'_>,
    limits: &Limits,
) -> Result<Unpacked, UnpackError> {
    unpack_entries(Entries::new(Source::new(input), limits), directory.as_fd(), top)
}

/// The same from a pipe, out of which the kernel moves the contents of large files by itself.
pub fn unpack_pipe(
    pipe: impl Pour,
    directory: impl AsFd,
    top: Top<'_>,
    limits: &Limits,
) -> Result<Unpacked, UnpackError> {
    unpack_entries(Entries::new(Source::pouring(pipe), limits), directory.as_fd(), top)
}

fn unpack_entries<R: Read>(
    mut entries: Entries<'_, R>,
    directory: BorrowedFd<'_>,
    top: Top<'_>,
) -> Result<Unpacked, UnpackError> {
    if let Top::Named(name) = top
        && (matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0))
    {
        return Err(UnpackError::Name { name: name.to_vec(), why: NameError::Upwards });
    }
    let mut tree = Tree::new(directory);
    let made = place_all(&mut entries, &mut tree, top);
    // After an error, too: what is there should be as closed as it was meant to be.
    let settled = tree.settle();
    let made = made?;
    settled?;
    Ok(made)
}

fn place_all<R: Read>(
    entries: &mut Entries<'_, R>,
    tree: &mut Tree<'_>,
    top: Top<'_>,
) -> Result<Unpacked, UnpackError> {
    let mut made = Unpacked::default();
    while let Some(entry) = entries.next()? {
        made.entries += 1;
        made.bytes += place(under(entry, top), &mut entries.source, tree)?;
    }
    Ok(made)
}

/// The entry under the name that it is to have here.
fn under(mut entry: Entry, top: Top<'_>) -> Entry {
    if let Top::Named(top) = top {
        entry.name = entry.name.with_top(top);
        if let Content::HardLink(target) = &mut entry.content {
            *target = target.with_top(top);
        }
    }
    entry
}

/// Makes one entry; gives the bytes of its contents.
fn place<R: Read>(entry: Entry, source: &mut Source<R>, tree: &mut Tree<'_>) -> Result<u64, UnpackError> {
    let Entry { name, mode, modified, content, .. } = entry;
    // No program becomes another user by coming out of an archive.
    let mode = mode & 0o777;
    match content {
        Content::Special(special) => Err(UnpackError::Special { name: name.as_bytes().to_vec(), special }),
        Content::Directory => tree.directory(&name, mode, modified).map(|()| 0),
        Content::SymbolicLink(target) => tree.symbolic_link(&name, &target, modified).map(|()| 0),
        Content::HardLink(target) => tree.hard_link(&name, &target).map(|()| 0),
        Content::File(size) => {
            let file = File::from(tree.file(&name, mode)?);
            copy(source, &file, size, &name)?;
            rustix::fs::futimens(&file, &modified.timestamps()).map_err(system(Action::Settle, &name))?;
            Ok(size)
        }
    }
}

/// Moves a file's contents out of the stream.
fn copy<R: Read>(source: &mut Source<R>, file: &File, size: u64, name: &Name) -> Result<(), UnpackError> {
    if size >= LARGE && source.pours() {
        source.pour(file, size).map_err(|error| match Errno::from_io_error(&error) {
            Some(errno) => system(Action::Write, name)(errno),
            None if error.kind() == io::ErrorKind::UnexpectedEof => UnpackError::Truncated,
            None => UnpackError::Input(error),
        })?;
        return source.padding(size);
    }
    let mut left = size;
    while left > 0 {
        let mut piece = source.contents(left, size - left)?;
        left -= piece.len() as u64;
        while !piece.is_empty() {
            match rustix::io::write(file, piece) {
                Ok(count) => piece = &piece[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system(Action::Write, name)(errno)),
            }
        }
    }
    source.padding(size)
}
