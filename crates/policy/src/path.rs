//! Paths inside a sandbox. The resolver is lexical and total: what comes out is absolute, has no `.` or `..`
//! and no NUL, so that it may be joined below a root without leaving it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An absolute, normal path inside a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "PathBuf", into = "PathBuf")]
pub struct SandboxPath(PathBuf);

/// Why a text is no path inside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A relative path has nothing to be relative to.
    #[error("'{0}' is not an absolute path")]
    Relative(String),
    /// More `..` than there are directories.
    #[error("'{0}' leads outside of the root")]
    Outside(String),
    /// A NUL would end the path early in the kernel.
    #[error("'{0}' holds a NUL")]
    Nul(String),
    /// Longer than the kernel takes.
    #[error("a path of {0} bytes is longer than the 4095 that the kernel takes")]
    TooLong(usize),
}

const PATH_MAX: usize = 4095;

impl SandboxPath {
    /// Resolves `path` lexically.
    pub fn new(path: &Path) -> Result<Self, PathError> {
        let shown = || path.to_string_lossy().escape_debug().to_string();
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(PathError::Nul(shown()));
        }
        if bytes.len() > PATH_MAX {
            return Err(PathError::TooLong(bytes.len()));
        }
        if !path.is_absolute() {
            return Err(PathError::Relative(shown()));
        }
        let mut resolved = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => {
                    if !resolved.pop() {
                        return Err(PathError::Outside(shown()));
                    }
                }
                Component::Normal(name) => resolved.push(name),
            }
        }
        Ok(Self(resolved))
    }

    /// The path as the sandbox sees it.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The same place beneath the directory `root` of the host.
    #[must_use]
    pub fn beneath(&self, root: &Path) -> PathBuf {
        root.join(self.0.strip_prefix("/").unwrap_or(&self.0))
    }
}

impl FromStr for SandboxPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(Path::new(OsStr::new(text)))
    }
}

impl TryFrom<PathBuf> for SandboxPath {
    type Error = PathError;

    fn try_from(path: PathBuf) -> Result<Self, PathError> {
        Self::new(&path)
    }
}

impl From<SandboxPath> for PathBuf {
    fn from(path: SandboxPath) -> PathBuf {
        path.0
    }
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn resolves() {
        for (text, resolved) in
            [("/", "/"), ("/a/b", "/a/b"), ("//a/./b/", "/a/b"), ("/a/../b", "/b"), ("/a/b/../..", "/")]
        {
            assert_eq!(text.parse::<SandboxPath>().unwrap().as_path(), Path::new(resolved), "{text}");
        }
    }

    #[test]
    fn refuses() {
        assert!(matches!("a".parse::<SandboxPath>(), Err(PathError::Relative(_))));
        assert!(matches!("".parse::<SandboxPath>(), Err(PathError::Relative(_))));
        assert!(matches!("/a/../..".parse::<SandboxPath>(), Err(PathError::Outside(_))));
        assert!(matches!("/a\0b".parse::<SandboxPath>(), Err(PathError::Nul(_))));
        assert!(matches!("/a".repeat(3000).parse::<SandboxPath>(), Err(PathError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn nothing_leaves_its_root(parts in proptest::collection::vec("(\\.\\.|\\.||[a-z]{1,3}|\u{e9}| )", 0..12)) {
            let text = format!("/{}", parts.join("/"));
            if let Ok(path) = text.parse::<SandboxPath>() {
                let placed = path.beneath(Path::new("/root/of/it"));
                prop_assert!(placed.starts_with("/root/of/it"));
                prop_assert!(placed.components().all(|part| !matches!(part, Component::ParentDir)));
                prop_assert_eq!(SandboxPath::new(path.as_path()), Ok(path.clone()));
            }
        }
    }
}
