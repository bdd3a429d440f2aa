//! What a sandbox sees of the kernel: a /proc of its own with the host's secrets masked, and of /sys only
//! what runtimes read to size themselves.

use std::path::Path;

use policy::Nesting;

use crate::error::JailError;
use crate::read;
use crate::step::{Bound, Step, host_path, inside};

pub(crate) const HIDDEN_FILES: [&str; 11] = [
    "config.gz",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "modules",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
];
pub(crate) const HIDDEN_DIRECTORIES: [&str; 8] =
    ["acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "scsi"];
const SEALED: u64 = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

pub(super) fn steps(nesting: Nesting) -> Result<Vec<Step>, JailError> {
    let mut steps = vec![Step::FileSystem {
        kind: c"proc".to_owned(),
        path: inside(Path::new("/proc"))?,
        flags: libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
        options: None,
    }];
    steps.extend(settings(nesting)?);
    for name in HIDDEN_FILES {
        let (with, path) = (inside(Path::new("/dev/null"))?, inside(&Path::new("/proc").join(name))?);
        steps.push(Step::Cover { with, path });
    }
    let mut cover = |name: &str, with: &str, flags: u64| -> Result<(), JailError> {
        let path = inside(&Path::new("/proc").join(name))?;
        let source = if with.is_empty() { path.clone() } else { inside(Path::new(with))? };
        steps.push(Step::Again { source, path, flags });
        Ok(())
    };
    let present = |name: &&&str| Path::new("/proc").join(name).exists();
    for name in HIDDEN_DIRECTORIES.iter().filter(present) {
        cover(name, "/.agentbox/empty", SEALED)?;
    }
    cover("sys", "", SEALED)?;
    let processors = Path::new("/sys/devices/system/cpu");
    if processors.exists() {
        steps.push(Step::Bind {
            source: host_path(processors)?,
            path: inside(processors)?,
            bound: Bound::ReadOnly,
        });
    }
    Ok(steps)
}

/// Limits that the kernel keeps for each user namespace, set before /proc/sys is sealed.
fn settings(nesting: Nesting) -> Result<Vec<Step>, JailError> {
    // What is used inside counts for the caller outside, too, who shall always have some left.
    let mut values: Vec<(&str, u64)> = ["max_inotify_instances", "max_inotify_watches"]
        .into_iter()
        .filter_map(|name| Some((name, limit_outside(name)? / 2)))
        .collect();
    if nesting == Nesting::Closed {
        values.push(("max_user_namespaces", 0));
    }
    let mut steps = Vec::new();
    for (name, value) in values {
        let path = inside(&Path::new("/proc/sys/user").join(name))?;
        steps.push(Step::Setting { path, value: value.to_string().into_bytes() });
    }
    Ok(steps)
}

/// The same limit of the caller's own; none where the kernel does not have it.
fn limit_outside(name: &str) -> Option<u64> {
    read::text(&Path::new("/proc/sys/user").join(name)).ok()?.trim().parse().ok()
}
