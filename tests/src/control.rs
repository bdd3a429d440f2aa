//! Checks of walls, and their negative controls: a check that passes with the wall taken away checks nothing.

use std::io::Write as _;

use policy::{Backend, Wall};

use crate::{Agentbox, Caller, backend};

/// A check of a wall: starts sandboxes by the function it is given, and says what it found to be open.
pub type Check<'a> = &'a dyn Fn(&dyn Fn() -> Agentbox) -> Result<(), String>;

/// The wall stands in the program as it ships.
#[track_caller]
pub fn holds(caller: Caller, check: Check<'_>) {
    if let Err(breach) = check(&|| Agentbox::shipped(caller)) {
        panic!("{caller:?}: {breach}");
    }
}

/// The negative control: with the wall taken away the check fails, and without that the same build passes it.
#[track_caller]
pub fn breach(caller: Caller, wall: Wall, check: Check<'_>) {
    breach_all(caller, &[wall], check);
}

/// The negative control for what stands behind several walls: only with all of them taken away it is open, as any
/// one of them is enough.
#[track_caller]
pub fn breach_all(caller: Caller, walls: &[Wall], check: Check<'_>) {
    if let Some(wall) = walls.iter().find(|wall| !is_ours(**wall)) {
        let _ = writeln!(std::io::stderr(), "no negative control on {}: {wall} is its runtime's", backend());
        return;
    }
    if let Err(breach) = check(&|| Agentbox::weakened(caller, &[])) {
        panic!("{caller:?}: with no wall taken away: {breach}");
    }
    let names: Vec<&str> = walls.iter().map(|wall| wall.name()).collect();
    let names = names.join(" + ");
    match check(&|| Agentbox::weakened(caller, walls)) {
        Ok(()) => panic!("{caller:?}: the check does not notice that {names} is taken away"),
        // Not by the test runner's own output, which hides what successful tests print.
        Err(breach) => drop(writeln!(std::io::stderr(), "negative control: {names}: {caller:?}: {breach}")),
    }
}

/// Whether a wall is one that we build with the backend under test, and can take away. What its runtime builds it builds
/// in every case.
#[must_use]
pub fn is_ours(wall: Wall) -> bool {
    match backend() {
        Backend::Native => true,
        // It wants a cgroup file system of the sandbox's own, which nobody mounts without such a namespace: nothing starts.
        Backend::Runc if wall == Wall::CgroupNamespace => false,
        Backend::Crun | Backend::Runc => !matches!(
            wall,
            Wall::Descriptors
                | Wall::Capabilities
                | Wall::NonRoot
                | Wall::UserNamespace
                | Wall::PidNamespace
                | Wall::NoNewPrivileges
        ),
        Backend::Gvisor => matches!(wall, Wall::MountNamespace | Wall::DiskLimit | Wall::MemoryLimit),
    }
}

/// The wall stands, and its check fails without it.
#[track_caller]
pub fn stands(caller: Caller, wall: Wall, check: Check<'_>) {
    holds(caller, check);
    breach(caller, wall, check);
}
