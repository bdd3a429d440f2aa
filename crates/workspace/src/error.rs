//! What can go wrong between a layer and the owner's tree, and what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::git::GitError;

/// Why a workspace cannot be shown or taken back. Nothing of the owner's is changed then.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// git did not do what it was told.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file of ours or of the owner's.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is nothing to review.
    #[error("this sandbox has no reviewed workspace")]
    NoWorkspace,
    /// The owner's directory is not there any more.
    #[error("the directory '{}' is gone", .0.display())]
    OwnerGone(PathBuf),
    /// A layer with more in it than is taken.
    #[error("there are more than {most} {what} in the changes")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much is taken.
        most: u64,
    },
    /// A layer that was not written by an overlay of ours.
    #[error("the layer has a kind of entry that is not understood, at '{0}'")]
    Layer(String),
    /// What there is now is not what was shown.
    #[error("the changes are not those that were shown: tree {now}, not {shown}")]
    Changed {
        /// What was shown or asked for.
        shown: String,
        /// What there is.
        now: String,
    },
    /// Nothing was changed.
    #[error("there is nothing to apply")]
    Nothing,
    /// There are no commits, and all else is where it belongs already.
    #[error("there are no commits to take, and all else is in your directory already")]
    NoCommits,
    /// Only commits are taken from a tree that was worked on directly.
    #[error("what was changed is in your directory already: only commits can be taken, as a branch")]
    Direct,
    /// A path at which nothing was changed.
    #[error("nothing was changed at '{0}'")]
    NoSuchPath(String),
    /// A branch that is there already.
    #[error("there is a branch '{0}' already")]
    BranchExists(String),
    /// What cannot be a branch.
    #[error("'{0}' cannot be the name of a branch here")]
    BadBranch(String),
    /// What needs a repository.
    #[error("'{}' is not the top of a git repository", .0.display())]
    NoRepository(PathBuf),
    /// Files that the owner has changed since.
    #[error("you have changed what was changed inside, too: {}", .0.join(", "))]
    Conflicts(Vec<String>),
    /// What the owner does not want without a look.
    #[error("there are risky changes: {}", .0.join("; "))]
    Risky(Vec<String>),
    /// Commits from inside that cannot be taken.
    #[error("the commits from inside cannot be taken: {0}")]
    Commits(&'static str),
    /// An apply that was cut off and could not be undone, because its files were changed since.
    #[error("an apply was cut off, and '{0}' has been changed since")]
    Recovery(String, PathBuf),
}

impl ReviewError {
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Git(GitError::NotInstalled) => "install git",
            Self::Git(GitError::Failed { .. }) => "check that there is room on the disk, and try again",
            Self::Git(GitError::Run(_)) | Self::Layer(_) => return None,
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room on that disk and try again; nothing of yours was changed"
            }
            Self::File { .. } => "check that it can be read and written by you",
            Self::NoWorkspace => "give one a directory to work on: agentbox run -w DIR -- CMD",
            Self::OwnerGone(_) => "put it back where it was; `agentbox discard` throws the changes away",
            Self::TooMuch { .. } => "remove what was generated inside, or name it in .gitignore",
            Self::Changed { .. } => "look at them with `agentbox diff`, then apply again",
            Self::Nothing | Self::NoCommits => "`agentbox diff` shows what there is",
            Self::Direct => {
                "leave out paths, --worktree, --patch and --squash; `git diff` shows what is not committed"
            }
            Self::NoSuchPath(_) => "`agentbox diff --name-only` lists what was changed",
            Self::BranchExists(_) => "choose another with --branch NAME, or delete that one with git",
            Self::BadBranch(_) => "choose another with --branch NAME",
            Self::NoRepository(_) => "bring the changes into the directory with --worktree",
            Self::Conflicts(_) => {
                "merge them with --3way, leave them out by naming other paths, or apply to a branch"
            }
            Self::Risky(_) => "look at them with `agentbox diff`, and apply without --refuse-risky",
            Self::Commits(_) => "take the files as one commit with --squash",
            Self::Recovery(_, place) => {
                return Some(format!("both versions are kept in '{}'", place.display()));
            }
        };
        Some(hint.to_owned())
    }
}
