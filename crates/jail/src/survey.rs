//! What the machine has, looked at once. Nothing here depends on what a sandbox is to be, so that a keeper can do it
//! while its order is still on the way.

use std::path::Path;

use policy::{Report, SandboxId};

use crate::cgroup::{Cgroup, Hierarchies};
use crate::error::JailError;
use crate::ids::IdMap;
use crate::read;
use crate::root::HostTrees;
use crate::subordinates::Subordinates;
use crate::sys;

/// What sandboxes on this machine are made from.
pub struct Survey {
    pub(crate) landlock: u32,
    pub(crate) has_cgroup_namespaces: bool,
    subordinates: Subordinates,
    hierarchies: Result<Hierarchies, String>,
    pub(crate) host: HostTrees,
}

impl Survey {
    /// Looks at the machine.
    #[must_use]
    pub fn take(subordinates: Subordinates) -> Self {
        Self {
            landlock: sys::landlock_version(),
            has_cgroup_namespaces: has_cgroup_namespaces(),
            subordinates,
            hierarchies: Hierarchies::read().map_err(|error| format!("cannot read the cgroups: {error}")),
            host: HostTrees::look(),
        }
    }

    /// Chooses the best id map that the caller can have, and reports it.
    pub fn choose_ids(&self, ranges: &Path, report: &mut Report) -> Result<IdMap, JailError> {
        IdMap::choose(&self.subordinates, ranges, report)
    }

    /// Finds where the caller may make cgroups; nothing is made yet. The error says why there is no place.
    pub fn find_cgroup(&self, id: &SandboxId) -> Result<Cgroup, String> {
        Cgroup::find(self.hierarchies.as_ref()?, id)
    }
}

/// The limit counts the caller's user namespace; the file is missing where the kernel has no such namespaces.
fn has_cgroup_namespaces() -> bool {
    let limit = read::text(Path::new("/proc/sys/user/max_cgroup_namespaces"));
    limit.is_ok_and(|limit| limit.trim() != "0")
}
