//! Tar streams: a file or a tree as a stream, and a stream as a tree, beneath a directory that is given as a
//! descriptor; and a tree that goes. It stands on both sides of the wall, and on each side it distrusts the other: an
//! archive is made by an enemy, and the tree beneath the directory is changed by one while it is read or written.
//!
//! It must never follow a link, never reach anything outside of its directory, never open a device to read it, and
//! never keep more in memory than its limits and constants allow.

mod block;
mod buffer;
mod empty;
mod error;
mod extended;
mod limits;
mod moment;
mod name;
mod number;
mod pack;
mod unpack;

pub use block::{Field, Special};
pub use empty::{Closed, EmptyError, empty};
pub use error::{Action, HeaderError, PackError, UnpackError};
pub use extended::{Attribute, ExtendedError};
pub use limits::{Limit, Limits};
pub use moment::Moment;
pub use name::{Name, NameError};
pub use pack::{Member, Output, Packed, Remark, What, Why, Writer, pack};
pub use unpack::{
    Content, Entries, Entry, Open, Pour, Top, Unpacked, Way, open_beneath, unpack, unpack_pipe,
};
