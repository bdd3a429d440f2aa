//! An archive that is written member by member, with owners and extended attributes: what an image's layer needs and a
//! copy of files does not.

use std::fs::File;
use std::io;

use rustix::fs::Stat;

use super::output::Output;
use super::sink::{Contents, Outgoing, Sink};
use crate::block::Kind;
use crate::extended::Attribute;
use crate::moment::Moment;

/// One member of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its name; a directory's may end with a slash or not.
    pub name: &'a [u8],
    /// What it is.
    pub what: What<'a>,
    /// Its access rights.
    pub mode: u32,
    /// The number of its owner.
    pub uid: u64,
    /// The number of its group.
    pub gid: u64,
    /// When it was last written; the beginning of time where nobody cares.
    pub modified: Option<&'a Stat>,
    /// Its extended attributes.
    pub attributes: &'a [Attribute],
}

/// What a member is.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    SymbolicLink(&'a [u8]),
    /// A second name of a member that was written before.
    HardLink(&'a [u8]),
}

/// Writes an archive.
#[derive(Debug)]
pub struct Writer<'a> {
    sink: Sink<'a>,
}

impl<'a> Writer<'a> {
    /// Begins one.
    #[must_use]
    pub fn new(output: Output<'a>) -> Self {
        Self { sink: Sink::new(output) }
    }

    /// Writes the header of a member; after that of a file come its contents.
    pub fn member(&mut self, member: &Member<'_>) -> io::Result<()> {
        let Member { name, what, mode, uid, gid, modified, attributes } = *member;
        let (kind, link, size): (_, &[u8], _) = match what {
            What::File(size) => (Kind::File, b"", size),
            What::Directory => (Kind::Directory, b"", 0),
            What::SymbolicLink(target) => (Kind::SymbolicLink, target, 0),
            What::HardLink(target) => (Kind::HardLink, target, 0),
        };
        let modified = modified.map_or_else(Moment::default, Moment::of);
        let outgoing = |name| Outgoing { kind, name, link, mode, size, modified, uid, gid, attributes };
        if kind == Kind::Directory && !name.ends_with(b"/") {
            return self.sink.header(&outgoing(&[name, b"/"].concat()));
        }
        self.sink.header(&outgoing(name))
    }

    /// The contents of a file that are at hand.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.bytes(bytes)
    }

    /// The contents of a file, exactly as many bytes as its header says; whether it had neither more nor fewer.
    pub fn contents(&mut self, file: &File, size: u64) -> io::Result<bool> {
        self.sink.contents(file, size).map(|contents| contents == Contents::Whole)
    }

    /// Ends the archive.
    pub fn finish(self) -> io::Result<()> {
        self.sink.finish()
    }
}
