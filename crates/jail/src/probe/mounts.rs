//! Probes that mount something, each in a user and mount namespace of its own on a tmpfs of its own.

use std::ffi::CStr;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::process::geteuid;

use super::trial::{Attempt, Refusal, Trial};
use crate::idmap;
use crate::step::Bound;
use crate::sys::{self, Errno, Outcome};

/// A tree that every host has and that a sandbox shows.
const TREE: &CStr = c"/usr";
const SEALED: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Makes the attempts with a small tmpfs for working directory, in namespaces beside the mount namespace.
fn on_tmpfs(staging: &CStr, namespaces: i32, attempts: &[Attempt<'_>]) -> Result<(), Refusal> {
    let private = || sys::mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None);
    let tmpfs = || {
        let (flags, options) = (libc::MS_NOSUID | libc::MS_NODEV, c"mode=0755,size=65536");
        sys::mount(c"agentbox", staging, Some(c"tmpfs"), flags, Some(options))?;
        sys::change_directory(staging)
    };
    let mut all: Vec<Attempt<'_>> =
        vec![("cut the mounts off from the host's", &private), ("mount a tmpfs", &tmpfs)];
    all.extend_from_slice(attempts);
    Trial::namespaces(libc::CLONE_NEWNS | namespaces).run(&all)
}

pub(super) fn new_root(staging: &CStr) -> Result<(), Refusal> {
    let leave = || sys::pivot_root(c".", c".").and_then(|()| sys::unmount_detached(c"."));
    on_tmpfs(staging, 0, &[("leave the host's root", &leave)])
}

pub(super) fn fresh_proc(staging: &CStr) -> Result<(), Refusal> {
    let mount = || mount_at(c"proc", SEALED, None);
    on_tmpfs(staging, libc::CLONE_NEWPID, &[("mount a new /proc", &mount)])
}

pub(super) fn devpts(staging: &CStr) -> Result<(), Refusal> {
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    let mount = || mount_at(c"devpts", libc::MS_NOSUID | libc::MS_NOEXEC, Some(options));
    on_tmpfs(staging, 0, &[("mount a new devpts", &mount)])
}

/// Mounts a file system of the kernel's at a directory of its own name.
fn mount_at(kind: &CStr, flags: u64, options: Option<&CStr>) -> Outcome {
    sys::make_directory(kind, 0o755)?;
    sys::mount(kind, kind, Some(kind), flags, options)
}

/// Root's keeper takes hold of a tree before it clones; an ordinary user's builder binds it after.
pub(super) fn bind(staging: &CStr) -> Result<(), Refusal> {
    let hold = || idmap::tree(Path::new("/usr"), Bound::ReadOnly);
    let held = geteuid().is_root().then(hold).transpose()?;
    let bind = || {
        sys::make_directory(c"tree", 0o755)?;
        match &held {
            Some(tree) => sys::attach_tree(tree.as_raw_fd(), c"tree"),
            None => sys::mount(TREE, c"tree", None, libc::MS_BIND | libc::MS_REC, None),
        }
    };
    on_tmpfs(staging, 0, &[("mount /usr at a second place", &bind)])
}

pub(super) fn read_only_tree(staging: &CStr) -> Result<(), Refusal> {
    let bind = || {
        sys::make_directory(c"tree", 0o755)?;
        sys::make_directory(c"tree/below", 0o755)?;
        sys::mount(c"tree", c"tree", None, libc::MS_BIND, None)?;
        sys::mount(c"agentbox", c"tree/below", Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV, None)
    };
    let seal = || {
        let tree = sys::clone_tree(c"tree")?;
        sys::set_tree_attributes(tree, &Bound::ReadOnly.attributes())?;
        sys::attach_tree(tree, c"tree")?;
        sys::close(tree)
    };
    let write = || expect(libc::EROFS, sys::make_directory(c"tree/below/new", 0o755));
    let attempts: [Attempt<'_>; 3] = [
        ("mount below a mount", &bind),
        ("make both read-only", &seal),
        ("be refused to write there", &write),
    ];
    on_tmpfs(staging, 0, &attempts)
}

pub(super) fn limited_tmpfs(staging: &CStr) -> Result<(), Refusal> {
    let fill = || {
        let file = sys::open(c"file", libc::O_WRONLY | libc::O_CREAT, 0o600)?;
        let block = [0; 16384];
        // Four blocks are the whole of it, which file and directory share.
        let full = (0..5).try_for_each(|_| sys::write(file, &block).map(drop));
        expect(libc::ENOSPC, full)
    };
    on_tmpfs(staging, 0, &[("be refused to write more than its size", &fill)])
}

pub(super) fn overlay(staging: &CStr) -> Result<(), Refusal> {
    let mount = || {
        for directory in [c"lower", c"upper", c"work", c"merged"] {
            sys::make_directory(directory, 0o755)?;
        }
        let options = c"lowerdir=lower,upperdir=upper,workdir=work,userxattr";
        sys::mount(c"overlay", c"merged", Some(c"overlay"), libc::MS_NOSUID | libc::MS_NODEV, Some(options))
    };
    let write = || sys::make_directory(c"merged/new", 0o755);
    on_tmpfs(staging, 0, &[("mount an overlay", &mount), ("write to it", &write)])
}

/// Turns a refusal that has to come into success, and anything else into a failure.
pub(super) fn expect(refusal: i32, outcome: Outcome) -> Outcome {
    match outcome {
        Err(Errno(errno)) if errno == refusal => Ok(()),
        Err(errno) => Err(errno),
        // What should have been refused was allowed.
        Ok(()) => Err(Errno(libc::EEXIST)),
    }
}
