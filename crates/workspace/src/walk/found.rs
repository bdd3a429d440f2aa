//! What is read, and what is found in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::layer::Directory;
use crate::remark::Remark;
use crate::seen::Seen;

/// What a layer changes, as far as git would take it.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Paths that were written, and what is there.
    pub(crate) written: BTreeMap<Vec<u8>, Written>,
    /// Paths of the base that are gone.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// Other commits of repositories inside.
    pub(crate) pointers: BTreeMap<Vec<u8>, String>,
    /// What does not come back.
    pub(crate) remarks: Vec<Remark>,
    /// Paths at which the owner has something that is hidden inside.
    pub(crate) over_hidden: BTreeSet<Vec<u8>>,
    /// What of a tree git does not look at: what is ignored, submodules, other repositories.
    pub(crate) unlooked: Vec<Vec<u8>>,
}

/// What is read.
pub(crate) enum Ground {
    /// The layer of an overlay: all that is there was written inside.
    Layer,
    /// A tree that was worked on directly.
    Tree {
        /// What is not as the base has it, by git's own comparison; what it does not name was not touched.
        changed: BTreeSet<Vec<u8>>,
        /// Where the repositories of ours are.
        repositories: Directory,
    },
}

/// A file or a link in a layer, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    File(Seen),
    Link(Seen),
}

impl Written {
    pub(crate) const fn seen(&self) -> &Seen {
        match self {
            Self::File(seen) | Self::Link(seen) => seen,
        }
    }
}
