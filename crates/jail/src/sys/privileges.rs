//! Who the calling process is and what it may: ids, capabilities, resource limits.

use std::ffi::CStr;

use super::{NULL, Outcome, check};

pub(crate) fn set_groups(groups: &[u32]) -> Outcome {
    raw!(libc::SYS_setgroups, groups.len(), groups.as_ptr()).map(drop)
}

pub(crate) fn set_group(gid: u32) -> Outcome {
    raw!(libc::SYS_setresgid, gid, gid, gid).map(drop)
}

pub(crate) fn set_user(uid: u32) -> Outcome {
    raw!(libc::SYS_setresuid, uid, uid, uid).map(drop)
}

/// Does something with other ids for files, and with every capability that the thread has: the kernel takes some of
/// them away with the ids unless it is told not to.
pub(crate) fn with_file_ids(uid: u32, gid: u32, work: impl FnOnce() -> Outcome) -> Outcome {
    const NO_SETUID_FIXUP: u64 = 1 << 2;
    let before = prctl(libc::PR_GET_SECUREBITS, 0)?;
    prctl(libc::PR_SET_SECUREBITS, before as u64 | NO_SETUID_FIXUP)?;
    // Neither call tells of a failure; each returns what was.
    let (old_gid, old_uid) = (raw!(libc::SYS_setfsgid, gid)?, raw!(libc::SYS_setfsuid, uid)?);
    let done = work();
    raw!(libc::SYS_setfsuid, old_uid as u32)?;
    raw!(libc::SYS_setfsgid, old_gid as u32)?;
    prctl(libc::PR_SET_SECUREBITS, before as u64)?;
    done
}

pub(crate) fn prctl(option: i32, argument: u64) -> Outcome<i64> {
    raw!(libc::SYS_prctl, option, argument, 0u64, 0u64, 0u64)
}

/// The name by which process lists show the calling thread.
pub(crate) fn set_name(name: &CStr) -> Outcome {
    prctl(libc::PR_SET_NAME, name.as_ptr() as u64).map(drop)
}

/// Sets the permitted, effective and inheritable sets of the calling thread.
pub(crate) fn set_capabilities(kept: u64) -> Outcome {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let (low, high) = (kept as u32, (kept >> 32) as u32);
    // Effective, permitted and inheritable, for the low and then the high half; nothing is inheritable.
    let data: [u32; 6] = [low, low, 0, high, high, 0];
    raw!(libc::SYS_capset, header.as_ptr(), data.as_ptr()).map(drop)
}

/// For the negative controls: every capability survives the next exec, whoever runs it.
#[cfg(feature = "weaken")]
pub(crate) fn keep_capabilities() {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let mut data = [0u32; 6];
    let _ = raw!(libc::SYS_capget, header.as_ptr(), data.as_mut_ptr());
    (data[2], data[5]) = (data[1], data[4]);
    let _ = raw!(libc::SYS_capset, header.as_ptr(), data.as_ptr());
    for capability in 0..64u64 {
        let _ =
            raw!(libc::SYS_prctl, libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0u64, 0u64);
    }
}

#[cfg(not(feature = "weaken"))]
pub(crate) const fn keep_capabilities() {}

// Resource limits by the kernel's own numbers: the constants of C libraries differ in their type.
pub(crate) const LIMIT_CORE: u32 = 4;
pub(crate) const LIMIT_PROCESSES: u32 = 6;
pub(crate) const LIMIT_FILES: u32 = 7;

/// Sets a resource limit, hard and soft, to at most `value`; a limit that is lower already stays.
pub(crate) fn lower_limit(resource: u32, value: u64) -> Outcome {
    let mut now = [0u64; 2];
    raw!(libc::SYS_prlimit64, 0, resource, NULL, now.as_mut_ptr())?;
    let lowered = [value.min(now[1]), value.min(now[1])];
    raw!(libc::SYS_prlimit64, 0, resource, lowered.as_ptr(), NULL).map(drop)
}
