//! What is on file of a workspace, in a directory of the sandbox's state that nobody inside sees.
//!
//! ```text
//! sandboxes/<id>/
//!   layer/upper  layer/work     the overlay: what was written inside; an enemy's. Where the tree itself is inside, only the
//!                               repositories of ours that are bound over the owner's
//!   review/                     ours alone
//!     workspace.json            `Recorded`: whose tree it is, and what it was at the start
//!     stores                    object stores of the owner's that are bound inside, each at its number
//!     hidden                    paths that are absent inside, each ended by a NUL; they are never a change
//!     git/                      our own repository: the base's objects and index, quarantined objects
//!     covers                    paths that were covered at the first start, where the tree itself is inside
//!     asked/                    repositories of ours with copies of the owner's indexes, for questions about those
//!     base                      the id of the base's tree, written last: without it the base is not recorded
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The files of one workspace.
#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    /// Those below a sandbox's own directory in the state.
    #[must_use]
    pub fn of(sandbox: &Path) -> Self {
        Self { directory: sandbox.to_owned() }
    }

    /// What has been written inside.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.directory.join("layer/upper")
    }

    /// Where the kernel prepares what it puts there.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.directory.join("layer/work")
    }

    /// The directory of ours.
    #[must_use]
    pub fn review(&self) -> PathBuf {
        self.directory.join("review")
    }

    /// What it was at the start.
    #[must_use]
    pub fn recorded(&self) -> PathBuf {
        self.review().join("workspace.json")
    }

    /// What is absent inside.
    #[must_use]
    pub fn hidden(&self) -> PathBuf {
        self.review().join("hidden")
    }

    /// What was covered at the first start.
    #[must_use]
    pub fn covers(&self) -> PathBuf {
        self.review().join("covers")
    }

    /// Repositories of ours to ask.
    #[must_use]
    pub fn asked(&self) -> PathBuf {
        self.review().join("asked")
    }

    /// The object stores that are bound inside.
    #[must_use]
    pub fn stores(&self) -> PathBuf {
        self.review().join("stores")
    }

    /// Our own repository.
    #[must_use]
    pub fn git(&self) -> PathBuf {
        self.review().join("git")
    }

    /// The id of the base's tree.
    #[must_use]
    pub fn base(&self) -> PathBuf {
        self.review().join("base")
    }
}

/// How a tree of the owner's is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Under a layer: what was changed waits.
    #[default]
    Review,
    /// Itself: what was changed is changed.
    Direct,
}

impl Mode {
    /// A stable word for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Direct => "direct",
        }
    }
}

/// A workspace as it was at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The version of this file.
    pub version: u32,
    /// How it is worked on.
    #[serde(default)]
    pub mode: Mode,
    /// The owner's directory.
    pub owner: PathBuf,
    /// Its repository, where it is the top of one.
    pub repository: Option<Repository>,
}

impl Recorded {
    /// The version that is written.
    pub const VERSION: u32 = 1;

    /// Writes it, whole or not at all.
    pub fn write(&self, files: &Files) -> io::Result<()> {
        let beside = files.review().join("workspace.json.new");
        fs::write(&beside, serde_json::to_vec_pretty(self)?)?;
        fs::rename(beside, files.recorded())
    }

    /// What is on file; none where there is nothing that is understood.
    #[must_use]
    pub fn read(files: &Files) -> Option<Self> {
        let recorded: Self = serde_json::from_slice(&fs::read(files.recorded()).ok()?).ok()?;
        (recorded.version == Self::VERSION).then_some(recorded)
    }
}

/// The owner's repository at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// What `.git` is, or leads to.
    pub git_dir: PathBuf,
    /// Where its refs and objects are; another directory than `git_dir` in a linked work tree.
    pub common_dir: PathBuf,
    /// Its object stores: its own first, then those that it borrows from.
    pub objects: Vec<PathBuf>,
    /// `sha1` or `sha256`.
    pub object_format: String,
    /// Where it stood.
    pub head: Head,
}

/// Where a repository stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The branch; none where HEAD is detached.
    pub branch: Option<String>,
    /// The commit; none where there is none yet.
    pub commit: Option<String>,
}
