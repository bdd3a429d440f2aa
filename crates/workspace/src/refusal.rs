//! Why a directory is not taken for a workspace, each with what its reader can do about it. Nothing of the owner's has
//! been changed when one of these is returned.

use std::io;
use std::path::PathBuf;

use crate::git::GitError;

/// A workspace that is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing is there, or no directory.
    #[error("'{}' cannot be a workspace", path.display())]
    Unusable {
        /// What was given.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A directory that holds more than a project.
    #[error("'{}' cannot be a workspace: it is {what}", path.display())]
    Forbidden {
        /// What was given.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Something is mounted in it, which an overlay would leave out.
    #[error("'{}' cannot be a workspace: something else is mounted at '{}'", path.display(), mount.display())]
    Mounted {
        /// What was given.
        path: PathBuf,
        /// Where.
        mount: PathBuf,
    },
    /// A part of a repository.
    #[error("'{}' is a part of the git repository at '{}'", path.display(), top.display())]
    Part {
        /// What was given.
        path: PathBuf,
        /// Where it begins.
        top: PathBuf,
    },
    /// A repository without a work tree.
    #[error("'{}' is a bare git repository, which has no files to work on", .0.display())]
    Bare(PathBuf),
    /// A `.git` that leads to a repository of another directory.
    #[error("the .git of '{}' leads to '{}', which does not lead back", path.display(), git_dir.display())]
    Foreign {
        /// What was given.
        path: PathBuf,
        /// Where it leads.
        git_dir: PathBuf,
    },
    /// A repository in a form that is not known here.
    #[error("the git repository of '{}' is in a form that is not understood: {what}", path.display())]
    Format {
        /// Whose it is.
        path: PathBuf,
        /// What is not understood.
        what: String,
    },
    /// Something of the repository cannot be read.
    #[error("cannot read '{}' of the git repository", path.display())]
    Repository {
        /// What.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something that cannot be covered where the tree itself is inside.
    #[error("'{}' cannot be worked on directly: '{}' {what}", path.display(), below.display())]
    Uncoverable {
        /// What was given.
        path: PathBuf,
        /// What in it.
        below: PathBuf,
        /// What is the matter with it.
        what: &'static str,
    },
    /// More to cover than a start should take.
    #[error("'{}' cannot be worked on directly: more than {most} files in it would have to be covered", path.display())]
    TooMuchToCover {
        /// What was given.
        path: PathBuf,
        /// How many would be.
        most: usize,
    },
    /// More files than are looked through.
    #[error("'{}' holds more than {most} files, or directories too deep to be looked through", path.display())]
    TooLarge {
        /// What was given.
        path: PathBuf,
        /// How many would be.
        most: usize,
    },
    /// A file of ours in the sandbox's own directory.
    #[error("cannot use '{}'", path.display())]
    Layer {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// git did not do what it was told.
    #[error("cannot prepare the workspace")]
    Git(#[from] GitError),
}

impl Refusal {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unusable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "it has to be readable for whoever runs agentbox".to_owned()
            }
            Self::Unusable { .. } => {
                "give a directory, or leave --workspace out for an empty one".to_owned()
            }
            Self::Forbidden { .. } => "give the directory of one project".to_owned(),
            Self::Mounted { .. } => {
                "unmount it, or work on a directory beside it and show it with --mount".to_owned()
            }
            Self::Part { path, top } => {
                let below = path.strip_prefix(top).unwrap_or(path);
                format!(
                    "give the whole of it: --workspace {} --workdir /workspace/{}",
                    top.display(),
                    below.display()
                )
            }
            Self::Bare(_) => "give a clone of it that has a work tree".to_owned(),
            Self::Foreign { .. } => {
                "`git worktree repair` mends a work tree that was moved; else `git config core.worktree` there"
                    .to_owned()
            }
            Self::Format { .. } => "clone it in git's usual form (`--ref-format=files`) and give that".to_owned(),
            Self::Repository { .. } => "`git fsck` tells what is the matter with it".to_owned(),
            Self::Uncoverable { .. } | Self::TooMuchToCover { .. } => {
                "leave :direct out: under review nothing has to be covered".to_owned()
            }
            Self::TooLarge { .. } => "give a smaller directory".to_owned(),
            Self::Layer { .. } => {
                "check that the state directory has room and carries extended attributes, or set AGENTBOX_HOME to a \
                 directory on a local disk"
                    .to_owned()
            }
            Self::Git(GitError::NotInstalled) => "install git, which reviews are made with".to_owned(),
            Self::Git(_) => "`git status` in the directory tells what git thinks of it".to_owned(),
        }
    }
}
