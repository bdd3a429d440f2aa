//! A process of the owner's own with the ids of sandboxes: for a user with subuids, files of an image belong to ids that
//! only a process in such a user namespace can give, or remove again. It runs nothing but our own program.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::error::JailError;
use crate::helper::Helper;
use crate::ids::IdMap;
use crate::subordinates::Subordinates;
use crate::sys;
use crate::yard::Face;

/// Gives a child of the caller's, which has called [`become_mapped`], its ids, where there are any to give.
pub fn map_child(pid: i32) -> Result<(), JailError> {
    match Subordinates::find() {
        Subordinates::Given { uids, gids } => {
            let ids = IdMap::Subordinate { uids, gids };
            ids.write(pid, Face::Agent)?.into_iter().try_for_each(Helper::finish)
        }
        Subordinates::NoHelper | Subordinates::NoRange => Ok(()),
    }
}

/// Enters a new user namespace and becomes root of it. The caller has one thread; `ask` has its parent call
/// [`map_child`]. Root has all ids already, and a user without subuids has nobody to become.
pub fn become_mapped(ask: impl FnOnce() -> std::io::Result<()>) -> Result<(), JailError> {
    if geteuid().is_root() || !matches!(Subordinates::find(), Subordinates::Given { .. }) {
        return ask().map_err(JailError::Namespaces);
    }
    let refused = |errno: sys::Errno| JailError::Namespaces(errno.into());
    sys::unshare(libc::CLONE_NEWUSER).map_err(refused)?;
    ask().map_err(JailError::Namespaces)?;
    sys::set_groups(&[]).and_then(|()| sys::set_group(0)).and_then(|()| sys::set_user(0)).map_err(refused)
}

/// The newest Landlock that is asked for.
const CEILING: ABI = ABI::V6;

/// Takes everything from the caller but one directory to write beneath and one file to read, as far as the kernel has
/// Landlock: whoever reads what strangers packed needs no more. A kernel without it has the other checks.
pub fn confine_to(directory: &Path, file: &Path) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(CEILING))?
        .handle_access(AccessNet::from_all(CEILING))?
        .scope(Scope::from_all(CEILING))?
        .create()?;
    for (path, access) in [(directory, AccessFs::from_all(CEILING)), (file, AccessFs::ReadFile.into())] {
        // What is not there is missed by whoever opens it.
        if let Ok(opened) = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            rules = rules.add_rule(PathBeneath::new(opened, access))?;
        }
    }
    rules.restrict_self().map(drop)
}
