//! What is told of an image on its way, for whoever waits.

use crate::digest::Digest;

/// Something that happened. Told from several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// So much of a blob is here.
    Received {
        /// Which.
        blob: Digest,
        /// How many bytes.
        bytes: u64,
        /// Of how many.
        of: u64,
    },
    /// The layer in a blob is being unpacked.
    Unpacking(Digest),
    /// It is.
    Unpacked(Digest),
}

/// Who is told.
pub type Progress<'a> = dyn Fn(Step) + Sync + 'a;
