//! The tree that a sandbox works on, and how its changes come back.

use std::path::PathBuf;
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
}

/// Why a text names no workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// Neither a directory nor a word that is known.
    #[error("it is empty: DIR, DIR:review, or the word `empty`")]
    Nothing,
    /// A NUL would end the path early in the kernel.
    #[error("'{0}' holds a NUL")]
    Nul(String),
    /// Planned, and not there.
    #[error("'{0}': working on a directory itself comes with a later version; `:review` is the only way yet")]
    Direct(String),
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
        if text.ends_with(":direct") {
            return Err(WorkspaceError::Direct(shown()));
        }
        let directory = text.strip_suffix(":review").unwrap_or(text);
        if directory.is_empty() {
            return Err(WorkspaceError::Nothing);
        }
        if directory.contains('\0') {
            return Err(WorkspaceError::Nul(shown()));
        }
        Ok(Self::Review(PathBuf::from(directory)))
    }
}

#[cfg(test)]
pub(crate) fn any_workspace() -> impl proptest::strategy::Strategy<Value = Workspace> {
    use proptest::prelude::*;
    prop_oneof![Just(Workspace::Empty), "(/[^/\0]{1,9}){1,4}".prop_map(|path| Workspace::Review(path.into()))]
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
            (".:direct", Err(WorkspaceError::Direct(".:direct".to_owned()))),
        ] {
            assert_eq!(text.parse::<Workspace>(), meant, "{text:?}");
        }
    }
}
