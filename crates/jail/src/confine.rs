//! The walls around the supervisor, and around the explicit proxy: each parses what strangers send, so it has an empty
//! root that it cannot write to, no capability, no way to run a program or to reach a socket of the host's, and as root
//! a host id that nothing else has.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError,
};

use crate::filters;
use crate::seccomp;
use crate::step::{Bound, Laid};
use crate::sys::{self, Errno};

/// Files of the host that it may read, for dialling out by name.
const READABLE: [&str; 2] = ["etc/resolv.conf", "etc/hosts"];

/// Why the supervisor could not be confined; it must end then.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A step of the kernel's failed.
    #[error("cannot confine the supervisor: {step}")]
    Step {
        /// Which.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Landlock said no where it is there.
    #[error("cannot confine the supervisor: Landlock")]
    Landlock(#[from] RulesetError),
}

/// Confines the calling process, which must have one thread, for good: no file of the host's but those for
/// dialling out is there afterwards, and none at all to write to.
pub fn confine(uid: Option<u32>) -> Result<(), ConfineError> {
    let at = |step| move |errno: Errno| ConfineError::Step { step, source: errno.into() };
    // From its first moment, and once more where a change of ids has cleared it.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64).map_err(at("follow the keeper"))?;
    sys::set_umask(0).map_err(at("set its umask"))?;
    if let Some(uid) = uid {
        sys::set_groups(&[])
            .and_then(|()| sys::set_group(uid))
            .and_then(|()| sys::set_user(uid))
            .map_err(at("become its own user"))?;
        // A change of ids hides /proc/self from the process itself, which has its own id map to write.
        sys::prctl(libc::PR_SET_DUMPABLE, 1).map_err(at("write its id map"))?;
    }
    let uid = uid.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let gid = rustix::process::getegid().as_raw();
    sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS)
        .map_err(at("make its namespaces"))?;
    let map = |file: &'static str, line: String| {
        std::fs::write(file, line).map_err(|source| ConfineError::Step { step: "write its id map", source })
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    map("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    leave_the_host().map_err(at("leave the host's files"))?;
    // From here on what it writes is for its owner alone.
    sys::set_umask(0o077).map_err(at("set its umask"))?;

    // After the last change of ids, which would clear it; the keeper's death is also an end-of-file.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64).map_err(at("follow the keeper"))?;
    sys::prctl(libc::PR_SET_DUMPABLE, 0).map_err(at("hide its memory"))?;
    drop_every_capability().map_err(at("drop its capabilities"))?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(at("give up new privileges"))?;
    restrict_files()?;
    seccomp::install(&filters::supervisor()).map_err(|errno| at("install its filter")(Errno(errno)))
}

/// An empty read-only root with the files for dialling out.
fn leave_the_host() -> Result<(), Errno> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    // Any directory serves to mount the new root on, and /proc is there on every machine.
    sys::mount(c"agentbox", c"/proc", Some(c"tmpfs"), flags, Some(c"mode=0755,size=65536"))?;
    sys::change_directory(c"/proc")?;
    sys::make_directory(c"etc", 0o755)?;
    for name in READABLE {
        let nul = |_| Errno(libc::EINVAL);
        let source = CString::new(format!("/{name}")).map_err(nul)?;
        let path = CString::new(name).map_err(nul)?;
        if !Path::new("/").join(name).exists() {
            continue;
        }
        Laid::File { path: &path, contents: &[] }.run()?;
        Laid::Bind { source: &source, path: &path, bound: Bound::ReadOnly }.run()?;
    }
    sys::pivot_root(c".", c".")?;
    sys::unmount_detached(c".")?;
    sys::change_directory(c"/")?;
    let sealed = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | flags;
    sys::mount(c"none", c"/", None, sealed, None)
}

fn drop_every_capability() -> Result<(), Errno> {
    for capability in 0..=63 {
        match sys::prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(_) => {}
            Err(Errno(libc::EINVAL)) => break,
            Err(errno) => return Err(errno),
        }
    }
    sys::set_capabilities(0)
}

/// The same once more by Landlock, where the kernel has it.
fn restrict_files() -> Result<(), ConfineError> {
    const NEWEST: ABI = ABI::V5;
    let all = AccessFs::from_all(NEWEST);
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rule(PathBeneath::new(handle(c"/etc")?, AccessFs::ReadFile | AccessFs::ReadDir))?
        .restrict_self()?;
    Ok(())
}

/// A handle that needs no right to the directory itself.
fn handle(path: &CStr) -> Result<OwnedFd, ConfineError> {
    sys::open(path, libc::O_PATH, 0)
        .map(sys::own)
        .map_err(|errno| ConfineError::Step { step: "open its directories", source: errno.into() })
}
