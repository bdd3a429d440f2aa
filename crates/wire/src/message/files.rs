//! What may be asked of a process that moves files, and what it answers. The request comes on its stdin, after its
//! length; bytes to be written follow. Its stdout is bytes: a file's contents or an archive. Its stderr is replies,
//! each after its length; the last one is `Done` or `Failed`, and no other reply is either.
//!
//! Where a pipe was passed to it, that is its stdout, and an archive goes through it in either direction.
//!
//! Paths and names are bytes of a file system inside: any byte but NUL, never a path of the host.

mod reply;

use bytes::Bytes;

pub use reply::{
    Change, FileAnswer, FileChanged, FileCode, FileDone, FileEntry, FileFailed, FileKind, FileReply,
    FileSkipped, FileStat, SkippedWhy,
};

/// Most bytes of a path or a name.
pub const PATH_LIMIT: usize = 4096;

/// Most entries of one page of a list.
pub const LIST_LIMIT: u32 = 1000;

/// Most bytes of one request: two paths and what stands around them.
pub const FILE_REQUEST_LIMIT: usize = 2 * PATH_LIMIT + 1024;

/// One thing to be done with files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileRequest {
    /// The question itself.
    #[prost(oneof = "FileAsk", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub ask: Option<FileAsk>,
}

/// Everything that can be asked of files. A path that is not absolute begins where the process was started.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum FileAsk {
    /// A part of a file or all of it, to stdout. `Stat` comes first.
    #[prost(message, tag = "1")]
    Read(ReadFile),
    /// All that comes on stdin, into a file.
    #[prost(message, tag = "2")]
    Write(WriteFile),
    /// What the kernel says of a file, as `Stat`.
    #[prost(message, tag = "3")]
    Stat(StatFile),
    /// A page of what is in a directory, as `Entry` each, in the order of the names' bytes.
    #[prost(message, tag = "4")]
    List(ListDirectory),
    /// A new directory.
    #[prost(message, tag = "5")]
    MakeDirectory(MakeDirectory),
    /// Another name for a file or a directory, within one mount.
    #[prost(message, tag = "6")]
    Move(MoveFile),
    /// A file, a link or a directory, away.
    #[prost(message, tag = "7")]
    Remove(RemoveFile),
    /// What happens to a file, or in a directory, as `Changed` each, until stdin ends or the file is gone. `Stat`
    /// comes first, when nothing can be missed any more.
    #[prost(message, tag = "8")]
    Watch(WatchFile),
    /// A file or a tree as a tar stream, to stdout; what was left out as `Skipped`.
    #[prost(message, tag = "9")]
    Pack(PackTree),
    /// The tar stream on stdin, into a directory that is there.
    #[prost(message, tag = "10")]
    Unpack(UnpackTree),
}

/// What to read. Whoever lost the connection asks again from where they were, and sees from `Stat` whether it is
/// still the same file.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReadFile {
    /// The file.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// The first byte to read.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// How many; zero is up to where the file ends when it is opened.
    #[prost(uint64, tag = "3")]
    pub length: u64,
}

/// Where to write.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WriteFile {
    /// The file, which is made where it is missing.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// What becomes of what is in it.
    #[prost(oneof = "WriteHow", tags = "2, 3, 4")]
    pub how: Option<WriteHow>,
    /// The access rights it gets; without any, a new file gets the usual ones and another one keeps its own.
    #[prost(uint32, optional, tag = "5")]
    pub mode: Option<u32>,
}

/// What becomes of what a file holds.
#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub enum WriteHow {
    /// It goes.
    #[prost(message, tag = "2")]
    Truncate(()),
    /// It stays, and the new bytes come after it.
    #[prost(message, tag = "3")]
    Append(()),
    /// It stays, but for what the new bytes come over from this one on. Where the file is shorter, it fails as
    /// changed: whoever goes on with a transfer has been wrong about it.
    #[prost(uint64, tag = "4")]
    At(u64),
}

/// What to look at.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatFile {
    /// The file.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// Whether a link is followed to where it leads.
    #[prost(bool, tag = "2")]
    pub follow: bool,
}

/// What to list.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListDirectory {
    /// The directory.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// The last name of the page before; empty for the first page.
    #[prost(bytes = "bytes", tag = "2")]
    pub after: Bytes,
    /// Most entries of this page, up to [`LIST_LIMIT`]; zero is as many as that.
    #[prost(uint32, tag = "3")]
    pub most: u32,
}

/// A directory to be made.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MakeDirectory {
    /// Its path.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// Whether those above it are made, too, and one that is there is as good.
    #[prost(bool, tag = "2")]
    pub parents: bool,
    /// Its access rights, without any the usual ones.
    #[prost(uint32, optional, tag = "3")]
    pub mode: Option<u32>,
}

/// What to move where.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MoveFile {
    /// The path it has.
    #[prost(bytes = "bytes", tag = "1")]
    pub from: Bytes,
    /// The path it gets.
    #[prost(bytes = "bytes", tag = "2")]
    pub to: Bytes,
    /// Whether a file that has that path may go.
    #[prost(bool, tag = "3")]
    pub replace: bool,
}

/// What to remove.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RemoveFile {
    /// The file, the link itself or the directory.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// Whether what is in a directory goes with it.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
}

/// What to watch.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WatchFile {
    /// The file, or the directory with the files in it, but not what is in directories in it.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
}

/// What to pack.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PackTree {
    /// The file, the link itself or the directory. Entries are named from its last part on, or from what is in it
    /// where it ends with a slash or a dot.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
}

/// Where to unpack.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UnpackTree {
    /// The directory.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// The name that the first part of every name in the archive becomes; empty to leave them.
    #[prost(bytes = "bytes", tag = "2")]
    pub top: Bytes,
    /// The archive comes through the stdout of the process, a pipe that was passed to it, and not through its stdin.
    #[prost(bool, tag = "3")]
    pub by_output: bool,
}

/// What a client says after all: how much went through the pipe that it passed, which nobody else has seen.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FileMoved {
    /// As it counted them.
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
}
