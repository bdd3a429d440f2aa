//! What a process that moves files answers. Made inside, and hostile as all that comes from there.

use bytes::Bytes;

/// One reply.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileReply {
    /// One of the list.
    #[prost(oneof = "FileAnswer", tags = "1, 2, 3, 4, 5, 6")]
    pub answer: Option<FileAnswer>,
}

/// Everything that can be answered.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum FileAnswer {
    /// What the kernel says of a file.
    #[prost(message, tag = "1")]
    Stat(FileStat),
    /// One entry of a directory.
    #[prost(message, tag = "2")]
    Entry(FileEntry),
    /// Something happened to what is watched.
    #[prost(message, tag = "3")]
    Changed(FileChanged),
    /// Something that is not in the archive as it is on disk.
    #[prost(message, tag = "4")]
    Skipped(FileSkipped),
    /// It is done, and this is the last reply.
    #[prost(message, tag = "5")]
    Done(FileDone),
    /// It is not done, or not to its end, and this is the last reply.
    #[prost(message, tag = "6")]
    Failed(FileFailed),
}

/// What the kernel says of a file.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileStat {
    /// What it is.
    #[prost(enumeration = "FileKind", tag = "1")]
    pub kind: i32,
    /// Its access rights, the lower twelve bits.
    #[prost(uint32, tag = "2")]
    pub mode: u32,
    /// Its length in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// When it was last written, in seconds since 1970.
    #[prost(int64, tag = "4")]
    pub modified_seconds: i64,
    /// The nanoseconds after those.
    #[prost(uint32, tag = "5")]
    pub modified_nanoseconds: u32,
    /// Its owner inside.
    #[prost(uint32, tag = "6")]
    pub uid: u32,
    /// Its group inside.
    #[prost(uint32, tag = "7")]
    pub gid: u32,
    /// Its number, which stays with it when it is renamed.
    #[prost(uint64, tag = "8")]
    pub inode: u64,
    /// How many names it has.
    #[prost(uint64, tag = "9")]
    pub names: u64,
    /// Where it leads, of a symbolic link.
    #[prost(bytes = "bytes", tag = "10")]
    pub target: Bytes,
}

/// What a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FileKind {
    /// None of the others.
    Unknown = 0,
    /// A regular file.
    File = 1,
    /// A directory.
    Directory = 2,
    /// A symbolic link.
    SymbolicLink = 3,
    /// A named pipe.
    Fifo = 4,
    /// A socket.
    Socket = 5,
    /// A character or block device.
    Device = 6,
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileEntry {
    /// Its name.
    #[prost(bytes = "bytes", tag = "1")]
    pub name: Bytes,
    /// What it is; a link is not followed.
    #[prost(message, optional, tag = "2")]
    pub stat: Option<FileStat>,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileChanged {
    /// What.
    #[prost(enumeration = "Change", tag = "1")]
    pub change: i32,
    /// To which entry of the directory; empty for what is watched itself.
    #[prost(bytes = "bytes", tag = "2")]
    pub name: Bytes,
    /// The same in the two halves of one move, else zero.
    #[prost(uint32, tag = "3")]
    pub cookie: u32,
}

/// What can happen to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Change {
    /// More happened than could be told: look anew.
    Lost = 0,
    /// It was made.
    Created = 1,
    /// It was written to.
    Modified = 2,
    /// It was closed by someone who could write to it.
    Closed = 3,
    /// Its rights, owner or times changed.
    Attributes = 4,
    /// It was removed.
    Removed = 5,
    /// It was moved away from here.
    MovedFrom = 6,
    /// It was moved to here.
    MovedTo = 7,
    /// What is watched itself was removed or moved; nothing more comes.
    Gone = 8,
}

/// Something that is not in an archive as it is on disk.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileSkipped {
    /// Its name in the archive.
    #[prost(bytes = "bytes", tag = "1")]
    pub path: Bytes,
    /// Why.
    #[prost(enumeration = "SkippedWhy", tag = "2")]
    pub why: i32,
    /// The kernel's error number, where it is unreadable.
    #[prost(int32, tag = "3")]
    pub errno: i32,
}

/// Why something is not in an archive as it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SkippedWhy {
    /// Left out: it could not be opened or read.
    Unreadable = 0,
    /// Left out: a named pipe.
    Fifo = 1,
    /// Left out: a socket.
    Socket = 2,
    /// Left out: a device.
    Device = 3,
    /// Left out: it was removed or replaced meanwhile.
    Vanished = 4,
    /// Left out: too deep, or its name too long.
    TooDeep = 5,
    /// In the archive, with zeros at its end: it became shorter while it was read.
    Shrank = 6,
    /// In the archive, as long as it was at first: it became longer while it was read.
    Grew = 7,
}

/// How much was done.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FileDone {
    /// Bytes of files that were read or written.
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
    /// Entries that were listed, packed, unpacked or removed, or changes that were told.
    #[prost(uint64, tag = "2")]
    pub entries: u64,
    /// Whether another page follows this one.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

/// Why it was not done.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileFailed {
    /// The reason, as far as a program needs it.
    #[prost(enumeration = "FileCode", tag = "1")]
    pub code: i32,
    /// The kernel's error number; zero where it was not the kernel who refused.
    #[prost(int32, tag = "2")]
    pub errno: i32,
    /// The file that it failed at, which may be one beneath the path that was asked for.
    #[prost(bytes = "bytes", tag = "3")]
    pub path: Bytes,
    /// What was wrong, in words: printable ASCII, at most 512 bytes, and made inside.
    #[prost(string, tag = "4")]
    pub detail: String,
}

/// Why something with files was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FileCode {
    /// Something else; the error number says more.
    Other = 0,
    /// There is no such file.
    NotFound = 1,
    /// The agent's rights do not suffice.
    Permission = 2,
    /// There is something already.
    Exists = 3,
    /// It is a directory.
    IsDirectory = 4,
    /// It, or something on the way to it, is no directory.
    NotDirectory = 5,
    /// The directory is not empty.
    NotEmpty = 6,
    /// It is not done as a rule: a device, a wrong archive, a malformed request.
    Refused = 7,
    /// It is over a limit.
    TooLarge = 8,
    /// The disk is full.
    NoSpace = 9,
    /// The file is not as it was.
    Changed = 10,
}
