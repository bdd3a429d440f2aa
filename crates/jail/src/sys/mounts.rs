//! Mounts, by path and as detached trees.

use std::ffi::CStr;
use std::os::fd::RawFd;

use super::{AT_HERE, NULL, Outcome, check};

pub(crate) fn mount(
    source: &CStr,
    target: &CStr,
    kind: Option<&CStr>,
    flags: u64,
    options: Option<&CStr>,
) -> Outcome {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    let options = options.map_or(NULL, |options| options.as_ptr().cast());
    raw!(libc::SYS_mount, source.as_ptr(), target.as_ptr(), kind, flags, options).map(drop)
}

pub(crate) fn unmount_detached(path: &CStr) -> Outcome {
    raw!(libc::SYS_umount2, path.as_ptr(), libc::MNT_DETACH).map(drop)
}

/// A private copy of the mounts at `path`, attached nowhere yet.
pub(crate) fn clone_tree(path: &CStr) -> Outcome<RawFd> {
    const OPEN_TREE_CLONE: libc::c_long = 1;
    let flags = OPEN_TREE_CLONE
        | libc::c_long::from(libc::O_CLOEXEC)
        | libc::c_long::from(libc::AT_RECURSIVE)
        | libc::c_long::from(libc::AT_NO_AUTOMOUNT);
    raw!(libc::SYS_open_tree, AT_HERE, path.as_ptr(), flags).map(|fd| fd as RawFd)
}

/// The attributes of a mount and of all mounts below it, as the kernel lays them out.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct MountAttributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) user_namespace: u64,
}

pub(crate) fn set_tree_attributes(tree: RawFd, attributes: &MountAttributes) -> Outcome {
    let flags = libc::c_long::from(libc::AT_EMPTY_PATH) | libc::c_long::from(libc::AT_RECURSIVE);
    let size = size_of::<MountAttributes>();
    raw!(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const *attributes, size).map(drop)
}

/// The same for the mounts at `path` and below.
pub(crate) fn set_mount_attributes(path: &CStr, attributes: &MountAttributes) -> Outcome {
    let size = size_of::<MountAttributes>();
    let flags = libc::c_long::from(libc::AT_RECURSIVE);
    raw!(libc::SYS_mount_setattr, AT_HERE, path.as_ptr(), flags, &raw const *attributes, size).map(drop)
}

/// Attaches a detached tree at `path`.
pub(crate) fn attach_tree(tree: RawFd, path: &CStr) -> Outcome {
    const MOVE_MOUNT_F_EMPTY_PATH: libc::c_long = 4;
    raw!(libc::SYS_move_mount, tree, c"".as_ptr(), AT_HERE, path.as_ptr(), MOVE_MOUNT_F_EMPTY_PATH).map(drop)
}
