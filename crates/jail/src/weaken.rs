//! Walls taken away one by one, for the negative controls of the tests. The shipped program is built without
//! the feature `weaken`: there every wall stands, and this module is a constant.

use std::borrow::Cow;

use policy::{SandboxSpec, Wall};

use crate::error::JailError;
use crate::ids::IdMap;
#[cfg(feature = "weaken")]
use crate::root::Direct;
use crate::root::Tree;
use crate::step::Step;

/// Which walls a test took away.
#[derive(Clone, Debug, Default)]
pub struct Weaken {
    #[cfg(feature = "weaken")]
    walls: Vec<Wall>,
}

impl Weaken {
    /// No wall is taken away.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            #[cfg(feature = "weaken")]
            walls: Vec::new(),
        }
    }

    /// The walls named in the variable AGENTBOX_WEAKEN, separated by commas.
    #[cfg(feature = "weaken")]
    #[must_use]
    pub fn current() -> Self {
        let names = std::env::var("AGENTBOX_WEAKEN").unwrap_or_default();
        let named = |wall: &&Wall| names.split(',').any(|name| name == wall.name());
        Self { walls: Wall::ALL.iter().filter(named).copied().collect() }
    }

    /// What a test took away from this process: nothing.
    #[cfg(not(feature = "weaken"))]
    #[must_use]
    pub const fn current() -> Self {
        Self::nothing()
    }

    /// Whether `wall` stands.
    #[cfg(feature = "weaken")]
    #[must_use]
    pub fn keeps(&self, wall: Wall) -> bool {
        !self.walls.contains(&wall)
    }

    /// Whether `wall` stands: always.
    #[cfg(not(feature = "weaken"))]
    #[must_use]
    pub const fn keeps(&self, _wall: Wall) -> bool {
        true
    }
}

#[cfg(feature = "weaken")]
impl Weaken {
    /// What is built instead.
    pub(crate) fn spec<'a>(&self, spec: &'a SandboxSpec) -> Cow<'a, SandboxSpec> {
        let mut spec = Cow::Borrowed(spec);
        if !self.keeps(Wall::NestedNamespaces) {
            spec.to_mut().nesting = policy::Nesting::Open;
        }
        // As many as the kernel has numbers for; the limit by cgroup is left out by whoever makes the cgroup.
        if !self.keeps(Wall::PidsLimit)
            && let Ok(all) = "4194304".parse()
        {
            spec.to_mut().limits.pids = all;
        }
        spec
    }

    /// Ids inside become ids of the host.
    pub(crate) fn ids(&self, ids: IdMap) -> IdMap {
        match ids {
            IdMap::Range { lock, makers, .. } if !self.keeps(Wall::UserNamespace) => {
                IdMap::Range { first: 0, lock, makers }
            }
            ids => ids,
        }
    }

    /// What is covered in a tree that is worked on directly stays to be seen.
    pub(crate) fn tree<'host>(&self, tree: Option<Tree<'host>>) -> Option<Tree<'host>> {
        match tree {
            Some(Tree::Direct(direct)) if !self.keeps(Wall::MountNamespace) => {
                Some(Tree::Direct(Direct { covers: &[], ..direct }))
            }
            tree => tree,
        }
    }

    /// Words for init, which puts some of the walls around each process itself.
    pub(crate) fn init_arguments(&self) -> Vec<String> {
        self.walls.iter().flat_map(|wall| ["--weaken".to_owned(), wall.name().to_owned()]).collect()
    }

    /// The host's own tree and processes become visible, and setuid counts in the owner's directories.
    pub(crate) fn root(&self, steps: &mut Vec<Step>) -> Result<(), JailError> {
        use std::path::Path;

        use crate::step::{Bound, Owner, host_path, inside};
        let host = |source: &str, path: &str| -> Result<Step, JailError> {
            let (source, path) = (host_path(Path::new(source))?, inside(Path::new(path))?);
            Ok(Step::Bind { source, path, bound: Bound::ReadWrite })
        };
        if !self.keeps(Wall::MountNamespace) {
            let path = inside(Path::new("/host"))?;
            steps.push(Step::Directory { path, mode: 0o755, owner: Owner::Builder });
            steps.push(host("/", "/host")?);
            // What lies under an overlay stays to be seen.
            steps.retain(|step| !matches!(step, Step::Unmount { .. }));
        }
        for step in steps {
            match step {
                // A new /proc is only to be had for a pid namespace of one's own.
                Step::FileSystem { kind, .. } if *kind == c"proc" && !self.keeps(Wall::PidNamespace) => {
                    *step = host("/proc", "/proc")?;
                }
                Step::Bind { bound: bound @ Bound::ReadWrite, .. } if !self.keeps(Wall::NoNewPrivileges) => {
                    *bound = Bound::Unsealed;
                }
                // That of an image, which root of the sandbox makes.
                Step::Overlay { path, options, uid: 0, gid: 0 } if !self.keeps(Wall::NoNewPrivileges) => {
                    let (kind, path, options) = (c"overlay".to_owned(), path.clone(), Some(options.clone()));
                    *step = Step::FileSystem { kind, path, flags: 0, options };
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(not(feature = "weaken"))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature it is asked")]
impl Weaken {
    pub(crate) const fn spec<'a>(&self, spec: &'a SandboxSpec) -> Cow<'a, SandboxSpec> {
        Cow::Borrowed(spec)
    }

    pub(crate) fn ids(&self, ids: IdMap) -> IdMap {
        ids
    }

    pub(crate) const fn tree<'host>(&self, tree: Option<Tree<'host>>) -> Option<Tree<'host>> {
        tree
    }

    pub(crate) const fn init_arguments(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) const fn root(&self, _steps: &mut Vec<Step>) -> Result<(), JailError> {
        Ok(())
    }
}
