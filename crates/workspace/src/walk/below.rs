//! What lies in a directory of a layer: a part of the tree, a submodule, another repository, or what git ignores.

use rustix::io::Errno;

use super::{Ground, Walk, unreadable};
use crate::error::ReviewError;
use crate::layer::Directory;
use crate::nested;
use crate::remark::Why;

impl Walk<'_> {
    pub(super) fn below(
        &mut self,
        directory: &Directory,
        path: &[u8],
        name: &[u8],
        is_ignored: bool,
        depth: usize,
    ) -> Result<(), ReviewError> {
        let listed = self.base.listing.get(path);
        if let Some(pointer) = listed.filter(|entry| entry.mode == "160000") {
            if self.is_layer() && has_files(directory, name) {
                self.leave(path, Why::Submodule);
            }
            self.pass(path);
            self.pointer(path, &pointer.object);
            return Ok(());
        }
        if self.base.nested.contains(path) {
            if self.is_layer() && has_files(directory, name) {
                self.leave(path, Why::Repository);
            }
            self.pass(path);
            return Ok(());
        }
        if listed.is_some() {
            self.found.removed.insert(path.to_vec());
        }
        if is_ignored {
            self.pass(path);
            return Ok(());
        }
        let inner = match directory.directory(name) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.leave(path, Why::Closed);
                return Ok(());
            }
            Err(errno) => return Err(unreadable(path, errno)),
        };
        self.directory(&inner, path, depth + 1)
    }

    /// A submodule, which is a commit: its files are its own repository's.
    fn pointer(&mut self, path: &[u8], before: &str) {
        let repositories = match &self.ground {
            Ground::Layer => &self.top,
            Ground::Tree { repositories, .. } => repositories,
        };
        if let Some(commit) = nested::head(repositories, path, before.len())
            && commit != before
        {
            self.found.pointers.insert(path.to_vec(), commit);
        }
    }
}

/// Whether anything was written in a repository below, beside what belongs to the repository itself.
fn has_files(directory: &Directory, name: &[u8]) -> bool {
    let entries = directory.directory(name).and_then(|inner| inner.entries(1000));
    !entries.is_ok_and(|entries| entries.is_some_and(|all| all.iter().all(|entry| entry.name == b".git")))
}
