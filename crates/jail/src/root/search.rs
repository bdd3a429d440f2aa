//! Looks through a tree that is about to be mounted: connect() works through any bind, so a socket of the
//! host's must be covered; and a `.git` that could be written would run the agent's code at the owner's next
//! git command.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::error::JailError;

/// A tree with more entries than this is refused: a search without an end is no wall.
const LIMIT: usize = 2_000_000;

/// What was found, as paths relative to the tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) sockets: Vec<PathBuf>,
    /// Directories that cannot be looked into, though they may be passed through, or be opened by their owner.
    pub(super) closed: Vec<PathBuf>,
    pub(super) repositories: Vec<PathBuf>,
}

/// Searches the whole tree, links not followed.
pub(super) fn search(tree: &Path) -> Result<Found, JailError> {
    search_up_to(tree, LIMIT)
}

fn search_up_to(tree: &Path, limit: usize) -> Result<Found, JailError> {
    let mut found = Found::default();
    let mut waiting = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(directory) = waiting.pop() {
        let entries = match fs::read_dir(tree.join(&directory)) {
            Ok(entries) => entries,
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied && !directory.as_os_str().is_empty() =>
            {
                found.closed.push(directory);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(JailError::Source { path: tree.join(directory), source }),
        };
        for entry in entries {
            let source = |source| JailError::Source { path: tree.join(&directory), source };
            let entry = entry.map_err(source)?;
            seen += 1;
            if seen > limit {
                return Err(JailError::TooManyFiles { path: tree.to_owned(), limit });
            }
            let kind = entry.file_type().map_err(source)?;
            let path = directory.join(entry.file_name());
            if kind.is_socket() {
                found.sockets.push(path.clone());
            }
            if entry.file_name() == ".git" {
                found.repositories.push(path.clone());
            }
            if kind.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn finds_sockets_and_repositories_wherever_they_are() {
        let tree = tempfile::tempdir().unwrap();
        let deep = tree.path().join("a/b/.git");
        fs::create_dir_all(&deep).unwrap();
        let _listener = UnixListener::bind(tree.path().join("a/agent.sock")).unwrap();
        std::os::unix::fs::symlink("/", tree.path().join("loop")).unwrap();
        let found = search(tree.path()).unwrap();
        assert_eq!(found.sockets, [Path::new("a/agent.sock")]);
        assert_eq!(found.repositories, [Path::new("a/b/.git")]);
    }

    #[test]
    fn an_endless_tree_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        for index in 0..20 {
            fs::write(tree.path().join(index.to_string()), "").unwrap();
        }
        assert!(matches!(search_up_to(tree.path(), 10), Err(JailError::TooManyFiles { limit: 10, .. })));
    }
}
