//! Every way in which packing or unpacking ends other than well. Names come from an enemy: they are kept as bytes,
//! and shown escaped.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::block::{Field, Special};
use crate::extended::ExtendedError;
use crate::limits::Limit;
use crate::name::NameError;

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It does not say that it is one.
    #[error("a header is not one of tar's")]
    Magic,
    /// Its bytes do not add up.
    #[error("a header's checksum is wrong")]
    Checksum,
    /// A field holds no number, or one that is impossible.
    #[error("a header's {0} is not a number that can be")]
    Number(Field),
    /// A field goes on after its end.
    #[error("a header's {0} goes on after a NUL")]
    AfterNul(Field),
    /// A kind of entry that is not known here: sparse files, parts of archives and others.
    #[error("an entry is of the unknown kind '{}'", .0.escape_ascii())]
    UnknownKind(u8),
    /// Bytes follow an entry that has none.
    #[error("a header gives a size to what has none")]
    Sized,
    /// Two headers in a row that both speak of the next entry, or one with no entry after it.
    #[error("an extended header belongs to no entry")]
    Stray,
    /// A long name or link that was given in two ways.
    #[error("an entry is named in two ways")]
    Ambiguous,
}

/// What the system was asked when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opening a file or a directory.
    Open,
    /// Reading it.
    Read,
    /// Making a file.
    Create,
    /// Writing to it.
    Write,
    /// Making a directory.
    MakeDirectory,
    /// Making a link.
    Link,
    /// Removing what was there before.
    Replace,
    /// Setting modes and times.
    Settle,
}

/// Why an archive could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The name leads out of the directory, or nowhere.
    #[error("'{}' cannot be packed: {why}", .name.escape_ascii())]
    Name {
        /// What was asked for.
        name: Vec<u8>,
        /// What is wrong with it.
        why: NameError,
    },
    /// The file or directory that was asked for could not be opened.
    #[error("cannot {action} '{}'", .name.escape_ascii())]
    System {
        /// What was tried.
        action: Action,
        /// On what.
        name: Vec<u8>,
        /// What the kernel said.
        #[source]
        errno: Errno,
    },
    /// What was asked for is no file, directory or link.
    #[error("'{}' is a device, a pipe or a socket", .name.escape_ascii())]
    Special {
        /// What was asked for.
        name: Vec<u8>,
    },
    /// The archive could not be written.
    #[error("cannot write the archive")]
    Output(#[source] io::Error),
}

/// Why an archive was not unpacked, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive could not be read.
    #[error("cannot read the archive")]
    Input(#[source] io::Error),
    /// It is something else.
    #[error("this is {0}, not a tar stream")]
    NotTar(&'static str),
    /// It ends before its end.
    #[error("the archive is cut off")]
    Truncated,
    /// Something follows its end.
    #[error("the archive goes on after its end")]
    Trailing,
    /// A header is wrong.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// An extended header is wrong.
    #[error("an extended header is wrong")]
    Extended(#[from] ExtendedError),
    /// A name that leads away.
    #[error("the archive names '{}': {why}", .name.escape_ascii())]
    Name {
        /// The name, cut where it is too long to show.
        name: Vec<u8>,
        /// What is wrong with it.
        why: NameError,
    },
    /// A device or a pipe.
    #[error("'{}' is a {special}", .name.escape_ascii())]
    Special {
        /// Its name.
        name: Vec<u8>,
        /// What it is.
        special: Special,
    },
    /// It would be more than was allowed.
    #[error("'{}' would go over the limit of {limit}", .name.escape_ascii())]
    Limit {
        /// The entry that would have.
        name: Vec<u8>,
        /// Which limit.
        limit: Limit,
    },
    /// A symbolic link, or something else that is no directory, is where a directory must be.
    #[error("'{}' would go through something that is no directory", .name.escape_ascii())]
    Through {
        /// The entry.
        name: Vec<u8>,
    },
    /// A hard link to something that this archive has not brought.
    #[error("'{}' is a link to '{}', which is no file of this archive", .name.escape_ascii(), .target.escape_ascii())]
    ForeignLink {
        /// The entry.
        name: Vec<u8>,
        /// Where it leads.
        target: Vec<u8>,
    },
    /// Somebody else changes the directory at the same time.
    #[error("'{}' was changed by somebody else", .name.escape_ascii())]
    Changed {
        /// The entry.
        name: Vec<u8>,
    },
    /// The kernel refused.
    #[error("cannot {action} '{}'", .name.escape_ascii())]
    System {
        /// What was tried.
        action: Action,
        /// On what.
        name: Vec<u8>,
        /// What the kernel said.
        #[source]
        errno: Errno,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Create => "create",
            Self::Write => "write",
            Self::MakeDirectory => "make directory",
            Self::Link => "link",
            Self::Replace => "replace",
            Self::Settle => "set mode and time of",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "name",
            Self::Link => "link",
            Self::Mode => "mode",
            Self::Size => "size",
            Self::Time => "time",
            Self::User => "owner",
            Self::Group => "group",
        })
    }
}

impl fmt::Display for Special {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fifo => "named pipe",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
        })
    }
}
