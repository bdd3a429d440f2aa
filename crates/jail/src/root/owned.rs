//! Directories and files of the owner's inside: `--mount` and the tool chains. As root they are shown under
//! other ids by an id-mapped mount, so that the agent is their owner inside and no file is changed for that.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use policy::{
    AGENT_GID, AGENT_UID, Access, Mount, MountError, SandboxPath, forbidden_source, forbidden_target,
};

use crate::error::JailError;
use crate::idmap;
use crate::ids::IdMap;
use crate::root::search::{Found, search};
use crate::root::{Sources, Tree, layered};
use crate::step::{Bound, Owner, Place, Step, host_path, inside};

const SEALED: u64 = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;

/// Collects the mounts of one sandbox.
pub(super) struct Mounts<'host> {
    ids: &'host IdMap,
    sources: &'host Sources<'host>,
    steps: Vec<Step>,
    made: BTreeSet<PathBuf>,
    covered_sockets: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// All that the mounts come to.
pub(super) struct PlannedMounts {
    pub(super) steps: Vec<Step>,
    pub(super) covered_sockets: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
}

impl<'host> Mounts<'host> {
    pub(super) fn new(ids: &'host IdMap, sources: &'host Sources<'host>) -> Self {
        let made = BTreeSet::new();
        Self { ids, sources, steps: Vec::new(), made, covered_sockets: Vec::new(), writable: Vec::new() }
    }

    /// A tool chain shows at its own path.
    pub(super) fn add_tool(&mut self, tree: &Path) -> Result<(), JailError> {
        let target = SandboxPath::new(tree).map_err(MountError::from)?;
        self.add(&Mount { source: tree.to_owned(), target, access: Access::ReadOnly })
    }

    /// A directory of ours that only this sandbox ever writes to: what is in it is the agent's own, sockets and
    /// repositories included.
    pub(super) fn add_kept(&mut self, source: &Path, target: &Path) -> Result<(), JailError> {
        let unusable = |error| JailError::Source { path: source.to_owned(), source: error };
        let metadata = fs::symlink_metadata(source).map_err(unusable)?;
        if !metadata.is_dir() {
            return Err(unusable(std::io::ErrorKind::NotADirectory.into()));
        }
        self.bring(source, (metadata.uid(), metadata.gid()), target, Bound::ReadWrite)
    }

    /// Shows a tree inside, as the agent's where it is its owner's.
    pub(super) fn bring(
        &mut self,
        source: &Path,
        owner: (u32, u32),
        target: &Path,
        bound: Bound,
    ) -> Result<(), JailError> {
        self.steps.push(match self.ids {
            IdMap::Range { .. } => {
                let tree = idmap::tree_for_agent(source, self.ids, owner, bound)?;
                Step::Attach { tree, path: inside(target)? }
            }
            IdMap::Subordinate { .. } | IdMap::Single => {
                Step::Bind { source: host_path(source)?, path: inside(target)?, bound }
            }
        });
        Ok(())
    }

    pub(super) fn add(&mut self, mount: &Mount) -> Result<(), JailError> {
        let unusable = |source| JailError::Source { path: mount.source.clone(), source };
        let source = fs::canonicalize(&mount.source).map_err(unusable)?;
        let metadata = fs::metadata(&source).map_err(unusable)?;
        if let Some(error) =
            forbidden_source(&source, self.sources.own).or_else(|| forbidden_target(&mount.target))
        {
            return Err(error.into());
        }
        let in_repository = source.iter().any(|part| part == ".git");
        let forbidden = if metadata.file_type().is_socket() {
            Some("a socket")
        } else if in_repository && mount.access == Access::ReadWrite {
            Some("git's own files, which may only be read")
        } else {
            None
        };
        if let Some(protected) = forbidden {
            let path = source.display().to_string().escape_debug().to_string();
            return Err(MountError::ForbiddenSource { path, protected: protected.to_owned() }.into());
        }
        let found = if metadata.is_dir() { search(&source)? } else { Found::default() };
        let target = mount.target.as_path();
        self.make_place(target, if metadata.is_dir() { Place::Directory } else { Place::File })?;
        let bound = match mount.access {
            Access::ReadOnly => Bound::ReadOnly,
            Access::ReadWrite => Bound::ReadWrite,
        };
        self.bring(&source, (metadata.uid(), metadata.gid()), target, bound)?;
        if mount.access == Access::ReadWrite {
            self.pin_above(target, &found.repositories)?;
        }
        for directory in found.closed {
            let path = inside(&target.join(directory))?;
            self.steps.push(Step::Again {
                source: inside(Path::new("/.agentbox/empty"))?,
                path,
                flags: SEALED,
            });
        }
        for socket in found.sockets {
            let path = inside(&target.join(&socket))?;
            self.steps.push(Step::Cover { with: inside(Path::new("/dev/null"))?, path });
            self.covered_sockets.push(source.join(socket));
        }
        if mount.access == Access::ReadWrite {
            for repository in found.repositories {
                let path = inside(&target.join(repository))?;
                self.steps.push(Step::Again { source: path.clone(), path, flags: SEALED });
            }
            self.writable.push(target.to_owned());
        }
        Ok(())
    }

    /// A directory that is mounted on cannot be renamed: else one that holds a repository could be put away, and
    /// another one with a repository of the agent's in its place.
    pub(super) fn pin_above(&mut self, target: &Path, repositories: &[PathBuf]) -> Result<(), JailError> {
        let above = repositories.iter().flat_map(|repository| repository.ancestors().skip(1));
        let directories: BTreeSet<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
        for directory in directories {
            let path = inside(&target.join(directory))?;
            self.steps.push(Step::Again { source: path.clone(), path, flags: 0 });
        }
        Ok(())
    }

    /// Makes what a mount needs to stand on, where it is not in a tree of the host's.
    pub(super) fn make_place(&mut self, target: &Path, kind: Place) -> Result<(), JailError> {
        let mut parents: Vec<_> = target.ancestors().skip(1).filter(|path| *path != Path::new("/")).collect();
        parents.reverse();
        for parent in parents {
            if self.made.insert(parent.to_owned()) {
                let (path, owner) = (inside(parent)?, self.place_owner(parent));
                self.steps.push(Step::Place { path, kind: Place::Directory, owner });
            }
        }
        if self.made.insert(target.to_owned()) {
            let owner = self.place_owner(target);
            self.steps.push(Step::Place { path: inside(target)?, kind, owner });
        }
        Ok(())
    }

    /// Whose a new place is: in a tree of the owner's, the agent's.
    fn place_owner(&self, path: &Path) -> Owner {
        let is_below = match self.sources.tree {
            Some(Tree::Layered(layered)) => layered::shows_below(layered.owner, path),
            Some(Tree::Direct(direct)) => layered::shows_below(direct.owner, path),
            None => false,
        };
        if is_below { Owner::Agent { uid: AGENT_UID, gid: AGENT_GID } } else { Owner::Builder }
    }

    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// A directory that processes may write to, as far as its own file system lets them.
    pub(super) fn add_writable(&mut self, target: &Path) {
        self.writable.push(target.to_owned());
    }

    pub(super) fn finish(self) -> PlannedMounts {
        let Self { steps, covered_sockets, writable, .. } = self;
        PlannedMounts { steps, covered_sockets, writable }
    }
}
