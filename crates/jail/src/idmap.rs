//! Trees that root's keeper takes hold of for a sandbox, as they are or by an id-mapped mount: then what is
//! one owner's shows inside as the agent's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use crate::error::JailError;
use crate::ids::{IdMap, MAPPED_IDS, Makers};
use crate::step::{Bound, host_path};
use crate::sys::{self, Cloned};

/// A detached copy of the mounts at `path`, ids as they are.
pub(crate) fn tree(path: &Path, bound: Bound) -> Result<OwnedFd, JailError> {
    let tree = clone_tree(path)?;
    sys::set_tree_attributes(tree.as_raw_fd(), &bound.attributes())
        .map_err(|errno| JailError::Source { path: path.to_owned(), source: errno.into() })?;
    Ok(tree)
}

fn clone_tree(path: &Path) -> Result<OwnedFd, JailError> {
    sys::clone_tree(&host_path(path)?)
        .map(sys::own)
        .map_err(|errno| JailError::Source { path: path.to_owned(), source: errno.into() })
}

/// A detached copy of the mounts at `path` in which what belongs to `owner` belongs to the agent. Files of
/// other ids belong to nobody there, and their own mode decides what the agent may do with them.
pub(crate) fn tree_for_agent(
    path: &Path,
    ids: &IdMap,
    owner: (u32, u32),
    bound: Bound,
) -> Result<OwnedFd, JailError> {
    let tree = clone_tree(path)?;
    let root = match ids {
        IdMap::Range { first, makers: Makers::Kernel, .. } => Some(*first),
        IdMap::Range { .. } | IdMap::Subordinate { .. } | IdMap::Single => None,
    };
    let namespace = namespace_with_map(owner, ids.host_agent(), root)?;
    let mut attributes = bound.attributes();
    attributes.set |= libc::MOUNT_ATTR_IDMAP;
    attributes.user_namespace = namespace.as_raw_fd() as u64;
    sys::set_tree_attributes(tree.as_raw_fd(), &attributes)
        .map_err(|errno| JailError::IdMappedMount { path: path.to_owned(), source: errno.into() })?;
    Ok(tree)
}

/// The ids of an image's layers, as one sandbox counts them.
pub(crate) struct ImageIds {
    namespace: File,
}

impl ImageIds {
    /// For the sandbox whose root has the id `first` on the host.
    pub(crate) fn new(first: u32) -> Result<Self, JailError> {
        let map = format!("0 {first} {MAPPED_IDS}");
        Ok(Self { namespace: namespace_with_maps(&map, &map)? })
    }

    /// A detached, read-only copy of a layer in which everybody is who they are in the sandbox.
    pub(crate) fn tree(&self, layer: &Path) -> Result<OwnedFd, JailError> {
        let tree = clone_tree(layer)?;
        let mut attributes = Bound::ReadOnly.attributes();
        attributes.set |= libc::MOUNT_ATTR_IDMAP;
        attributes.user_namespace = self.namespace.as_raw_fd() as u64;
        sys::set_tree_attributes(tree.as_raw_fd(), &attributes)
            .map_err(|errno| JailError::IdMappedMount { path: layer.to_owned(), source: errno.into() })?;
        Ok(tree)
    }
}

/// One id of the host's as another, and `also` as what it is.
fn namespace_with_map(from: (u32, u32), to: (u32, u32), also: Option<u32>) -> Result<File, JailError> {
    let also = also.map(|id| format!("\n{id} {id} 1")).unwrap_or_default();
    let line = |from: u32, to: u32| format!("{from} {to} 1{also}");
    namespace_with_maps(&line(from.0, to.0), &line(from.1, to.1))
}

/// A user namespace that exists only for its map. A process is needed to make one; it ends at once.
fn namespace_with_maps(users: &str, groups: &str) -> Result<File, JailError> {
    let failed = |source: io::Error| JailError::IdMap { what: "an id-mapped mount".to_owned(), source };
    let (reader, writer) = rustix::pipe::pipe().map_err(|errno| failed(errno.into()))?;
    match sys::clone_into(libc::CLONE_NEWUSER as u64, None).map_err(|errno| failed(errno.into()))? {
        Cloned::Child => {
            // It waits until the parent is done with it, or is gone.
            let _ = sys::close(writer.as_raw_fd());
            let _ = sys::read(reader.as_raw_fd(), &mut [0]);
            sys::exit(0)
        }
        Cloned::Parent { pid, pidfd } => {
            let write = |name: &str, line: &str| std::fs::write(format!("/proc/{pid}/{name}"), line);
            let namespace = write("uid_map", users)
                .and_then(|()| write("gid_map", groups))
                .and_then(|()| File::open(format!("/proc/{pid}/ns/user")));
            drop(writer);
            let _ = sys::kill(pidfd.as_fd());
            let _ = sys::reap(pidfd.as_fd());
            namespace.map_err(failed)
        }
    }
}
