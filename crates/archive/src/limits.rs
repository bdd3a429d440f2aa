//! How much an archive may be before it is refused.

use std::fmt;

/// The bounds of one unpacking. What would exceed one is refused before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files, directories, links and global headers together. Each takes some tens of bytes of memory.
    pub entries: u64,
    /// Bytes of one name, and of where a link leads; the kernel takes no more than 4095.
    pub name_length: usize,
    /// Names between slashes in one name.
    pub depth: usize,
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::entries`].
    Entries,
    /// [`Limits::name_length`].
    NameLength,
    /// [`Limits::depth`].
    Depth,
    /// A header of names and times larger than any that names within the limits need.
    ExtendedHeader,
    /// More directories than are remembered until the end, when they get their modes and times.
    Directories,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bytes => "bytes",
            Self::Entries => "entries",
            Self::NameLength => "the length of a name",
            Self::Depth => "the depth of a name",
            Self::ExtendedHeader => "an extended header",
            Self::Directories => "directories",
        })
    }
}
