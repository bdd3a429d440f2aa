//! The owner's tree under review: a layer of the sandbox's own over it, at /workspace and at the owner's own path, and
//! the object stores of its repositories. Once the overlay stands nothing else inside leads to the tree: what is hidden
//! in it, and the owner's `.git`, would be there.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use policy::{AGENT_GID, AGENT_UID, SandboxPath, forbidden_target};

use super::owned::Mounts;
use super::{WRITABLE, system};
use crate::error::JailError;
use crate::step::{Bound, Owner, Step, host_path, inside};

/// Where the object stores of repositories show inside, each by its number.
pub const OBJECTS: &str = "/.agentbox/objects";

/// Where the two trees are while the overlay is mounted: short names without a character that its options would have
/// to escape.
const LOWER: &str = "/.agentbox/lower";
const LAYER: &str = "/.agentbox/layer";
/// The same, relative to the new root as the steps are. What is lower is only ever read.
const OPTIONS: &str =
    "lowerdir=.agentbox/lower,upperdir=.agentbox/layer/upper,workdir=.agentbox/layer/work,userxattr";

/// Where a store names others.
const ALTERNATES: &str = "info/alternates";

pub(super) const WORKSPACE: &str = "/workspace";

/// A tree of the owner's and what lies over it.
#[derive(Clone, Copy, Debug)]
pub struct Layered<'host> {
    /// The owner's directory.
    pub owner: &'host Path,
    /// The directory of `upper` and `work`.
    pub layer: &'host Path,
    /// The object stores of its repositories, to read.
    pub stores: &'host [PathBuf],
}

/// Whether a path inside is below a tree of the owner's.
pub(super) fn shows_below(owner: &Path, path: &Path) -> bool {
    let is_below = |top: &Path| path != top && path.starts_with(top);
    is_below(Path::new(WORKSPACE)) || (shows_at_its_own_path(owner) && is_below(owner))
}

impl Mounts<'_> {
    /// Mounts it all.
    pub(super) fn add_layered(&mut self, layered: &Layered<'_>) -> Result<(), JailError> {
        self.bring_for_a_while(layered.owner, LOWER, Bound::ReadOnly)?;
        self.bring_for_a_while(layered.layer, LAYER, Bound::ReadWrite).map_err(|error| match error {
            JailError::IdMappedMount { path, source } => JailError::NoLayer { path, source },
            error => error,
        })?;
        let (path, options) = (inside(Path::new(WORKSPACE))?, host_path(Path::new(OPTIONS))?);
        self.push(Step::Overlay { path, options, uid: AGENT_UID, gid: AGENT_GID });
        // The overlay has taken hold of both by itself.
        for place in [LAYER, LOWER] {
            self.push(Step::Unmount { path: inside(Path::new(place))? });
        }
        self.add_stores(layered.stores)?;
        if shows_at_its_own_path(layered.owner) {
            self.make_place(layered.owner, crate::step::Place::Directory)?;
            let (source, path) = (inside(Path::new(WORKSPACE))?, inside(layered.owner)?);
            self.push(Step::Again { source, path, flags: 0 });
            self.add_writable(layered.owner);
        }
        Ok(())
    }

    /// Brings the object stores of repositories, to read.
    pub(super) fn add_stores(&mut self, stores: &[PathBuf]) -> Result<(), JailError> {
        self.push(directory(Path::new(OBJECTS))?);
        for (number, store) in stores.iter().enumerate() {
            let place = Path::new(OBJECTS).join(number.to_string());
            self.push(directory(&place)?);
            // One that has gone since the sandbox was made is missed by git, and by nobody else.
            if !store.is_dir() {
                continue;
            }
            self.bring(store, owner_of(store)?, &place, Bound::ReadOnly)?;
            // What it borrows from is bound beside it, and has another path there.
            if store.join(ALTERNATES).is_file() {
                let with = inside(Path::new("/dev/null"))?;
                self.push(Step::Cover { with, path: inside(&place.join(ALTERNATES))? });
            }
        }
        Ok(())
    }

    fn bring_for_a_while(&mut self, source: &Path, place: &str, bound: Bound) -> Result<(), JailError> {
        self.push(directory(Path::new(place))?);
        self.bring(source, owner_of(source)?, Path::new(place), bound)
    }
}

/// Whether a tree can be shown at the path that it has on the host: not over a wall, nor in a tree of the system's,
/// which is read-only, nor where it would be written into what is kept.
#[must_use]
pub fn shows_at_its_own_path(owner: &Path) -> bool {
    let Ok(target) = SandboxPath::new(owner) else { return false };
    let kept = super::KEPT.iter().map(|(_, place)| Path::new(*place));
    let holds_a_place = || WRITABLE.iter().any(|place| Path::new(place).starts_with(owner));
    forbidden_target(&target).is_none()
        && !system::TREES.iter().any(|tree| owner.starts_with(Path::new("/").join(tree)))
        && !kept.into_iter().any(|place| owner.starts_with(place))
        && !holds_a_place()
}

pub(super) fn directory(path: &Path) -> Result<Step, JailError> {
    Ok(Step::Directory { path: inside(path)?, mode: 0o755, owner: Owner::Builder })
}

pub(super) fn owner_of(path: &Path) -> Result<(u32, u32), JailError> {
    let metadata =
        fs::metadata(path).map_err(|source| JailError::Source { path: path.to_owned(), source })?;
    Ok((metadata.uid(), metadata.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_shows_where_nothing_is_in_its_way() {
        for path in ["/home/me/project", "/srv/code", "/tmp/x", "/home/agent/x", "/var/tmp/x", "/w"] {
            assert!(shows_at_its_own_path(Path::new(path)), "{path}");
        }
        for path in ["/usr/src/x", "/etc/x", "/workspace", "/workspace/x", "/mnt", "/home", "/tmp", "/bin/x"]
        {
            assert!(!shows_at_its_own_path(Path::new(path)), "{path}");
        }
    }
}
