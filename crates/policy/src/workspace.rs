//! The tree that a sandbox works on, and how its changes come back.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The tree to work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workspace {
    /// A private directory that ends with the sandbox.
    Empty,
    /// The owner's directory under a layer of the sandbox's own: nothing of it changes until the owner has read what
    /// was done, and takes it.
    Review(PathBuf),
    /// The owner's directory itself: what is written inside is written there at once. Its repositories are covered by
    /// others of the sandbox's own.
    Direct(PathBuf),
}

impl Workspace {
    /// The owner's directory, where it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Empty => None,
            Self::Review(directory) | Self::Direct(directory) => Some(directory),
        }
    }

    /// The same with the directory at another path.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Review(_) => Self::Review(directory.to_owned()),
            Self::Direct(_) => Self::Direct(directory.to_owned()),
        }
    }
}

/// Something of the owner's directory that is not for inside where the directory itself is, and what is there instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover {
    /// Where, as bytes relative to the directory.
    pub path: Vec<u8>,
    /// What is there instead.
    pub with: CoverWith,
}

/// What lies over something of the owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoverWith {
    /// A repository of the sandbox's own, over a directory.
    Repository,
    /// The same where there is a file that leads to one.
    RepositoryFile,
    /// Itself, to read only: what the owner's git runs or obeys.
    Itself,
    /// A directory that holds nothing and takes nothing, and stays where it is.
    Nothing,
    /// A directory that cannot be looked into.
    ClosedDirectory,
    /// A file that cannot be read.
    ClosedFile,
    /// A device that takes everything and gives nothing, over a socket, a pipe or a device.
    Null,
}

impl Cover {
    /// Whether what is above it must stay, too: else it could be put away with what covers it, and another be put in its
    /// place. A single file that cannot be read may be moved as it is.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        match self.with {
            CoverWith::ClosedFile | CoverWith::Null => self.path == b".git" || self.path.ends_with(b"/.git"),
            CoverWith::Repository
            | CoverWith::RepositoryFile
            | CoverWith::Itself
            | CoverWith::Nothing
            | CoverWith::ClosedDirectory => true,
        }
    }
}

/// Why a text names no workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// Neither a directory nor a word that is known.
    #[error("it is empty: DIR, DIR:review, DIR:direct, or the word `empty`")]
    Nothing,
    /// A NUL would end the path early in the kernel.
    #[error("'{0}' holds a NUL")]
    Nul(String),
}

impl FromStr for Workspace {
    type Err = WorkspaceError;

    /// `empty`, or a directory as it is written, with how its changes come back: review unless it says otherwise. A
    /// directory that is called `empty` is `./empty`.
    fn from_str(text: &str) -> Result<Self, WorkspaceError> {
        if text == "empty" {
            return Ok(Self::Empty);
        }
        let shown = || text.escape_debug().to_string();
        let (directory, kind): (&str, fn(PathBuf) -> Self) = match text.strip_suffix(":direct") {
            Some(directory) => (directory, Self::Direct),
            None => (text.strip_suffix(":review").unwrap_or(text), Self::Review),
        };
        if directory.is_empty() {
            return Err(WorkspaceError::Nothing);
        }
        if directory.contains('\0') {
            return Err(WorkspaceError::Nul(shown()));
        }
        Ok(kind(PathBuf::from(directory)))
    }
}

#[cfg(test)]
pub(crate) fn any_workspace() -> impl proptest::strategy::Strategy<Value = Workspace> {
    use proptest::prelude::*;
    let path = "(/[^/\0]{1,9}){1,4}";
    prop_oneof![
        Just(Workspace::Empty),
        path.prop_map(|path| Workspace::Review(path.into())),
        path.prop_map(|path| Workspace::Direct(path.into()))
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_alone_means_review() {
        let review = |path: &str| Ok(Workspace::Review(PathBuf::from(path)));
        for (text, meant) in [
            ("empty", Ok(Workspace::Empty)),
            (".", review(".")),
            ("./empty", review("./empty")),
            ("/a/b:review", review("/a/b")),
            ("/a:b", review("/a:b")),
            ("/a:review:review", review("/a:review")),
            ("", Err(WorkspaceError::Nothing)),
            (":review", Err(WorkspaceError::Nothing)),
            (".:direct", Ok(Workspace::Direct(PathBuf::from(".")))),
            ("/a:review:direct", Ok(Workspace::Direct(PathBuf::from("/a:review")))),
            (":direct", Err(WorkspaceError::Nothing)),
        ] {
            assert_eq!(text.parse::<Workspace>(), meant, "{text:?}");
        }
    }
}
