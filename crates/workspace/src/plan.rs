//! What an apply does to the owner's tree, step by step, written down before the first: each step can be told to be done
//! or not by looking, and can be undone.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Which file it is, and whether it was written to since. Being moved does not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
}

impl Identity {
    #[expect(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "these differ between architectures")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
        }
    }

    /// Whether it is the same file, changed or not.
    pub(crate) const fn is_same_file(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// A file of the owner's goes aside.
    Delete {
        /// Where it is.
        path: Vec<u8>,
        /// What it is.
        old: Identity,
    },
    /// A directory that is empty by then goes.
    RemoveDirectory {
        /// Where it is.
        path: Vec<u8>,
        /// With which mode it comes back.
        mode: u32,
    },
    /// A directory is made.
    MakeDirectory {
        /// Where.
        path: Vec<u8>,
    },
    /// A file that is prepared takes the place of one of the owner's, which goes aside.
    Replace {
        /// Where.
        path: Vec<u8>,
        /// What is there.
        old: Identity,
        /// What is prepared.
        new: Identity,
    },
    /// A file that is prepared comes to where nothing is.
    Add {
        /// Where.
        path: Vec<u8>,
        /// What is prepared.
        new: Identity,
    },
}

impl Step {
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Self::Delete { path, .. }
            | Self::RemoveDirectory { path, .. }
            | Self::MakeDirectory { path }
            | Self::Replace { path, .. }
            | Self::Add { path, .. } => path,
        }
    }
}

/// All steps, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
}
