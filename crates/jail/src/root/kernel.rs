//! What a sandbox sees of the kernel: a /proc of its own with the host's secrets masked, and of /sys only
//! what runtimes read to size themselves.

use std::path::Path;

use policy::Nesting;

use crate::error::JailError;
use crate::read;
use crate::step::{Bound, Step, host_path, inside};

const HIDDEN_FILES: [&str; 11] = [
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
const HIDDEN_DIRECTORIES: [&str; 8] =
    ["acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "scsi"];
const PROCESSORS: &str = "/sys/devices/system/cpu";
/// Limits that a sandbox shares with its owner.
const SHARED_LIMITS: [&str; 2] = ["max_inotify_instances", "max_inotify_watches"];
const SEALED: u64 = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// What this machine's kernel shows, and what of it is covered.
pub(super) struct View {
    hidden_files: Vec<&'static str>,
    hidden_directories: Vec<&'static str>,
    has_processors: bool,
    /// Limits of the caller's own user namespace.
    limits: Vec<(&'static str, u64)>,
}

impl View {
    /// Looks at the machine.
    pub(super) fn survey() -> Self {
        let present = |name: &&str| Path::new("/proc").join(name).exists();
        let limit = |name| Some((name, limit_outside(name)?));
        Self {
            hidden_files: HIDDEN_FILES.into_iter().filter(present).collect(),
            hidden_directories: HIDDEN_DIRECTORIES.into_iter().filter(present).collect(),
            has_processors: Path::new(PROCESSORS).exists(),
            limits: SHARED_LIMITS.into_iter().filter_map(limit).collect(),
        }
    }

    pub(super) fn steps(&self, nesting: Nesting) -> Result<Vec<Step>, JailError> {
        let mut steps = vec![Step::FileSystem {
            kind: c"proc",
            path: inside(Path::new("/proc"))?,
            flags: libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
            options: None,
        }];
        steps.extend(self.settings(nesting)?);
        let mut cover = |name: &str, with: &str, flags: u64| -> Result<(), JailError> {
            let path = inside(&Path::new("/proc").join(name))?;
            let source = if with.is_empty() { path.clone() } else { inside(Path::new(with))? };
            steps.push(Step::Again { source, path, flags });
            Ok(())
        };
        for name in &self.hidden_files {
            cover(name, "/dev/null", 0)?;
        }
        for name in &self.hidden_directories {
            cover(name, "/.agentbox/empty", SEALED)?;
        }
        cover("sys", "", SEALED)?;
        if self.has_processors {
            let processors = Path::new(PROCESSORS);
            let (source, path) = (host_path(processors)?, inside(processors)?);
            steps.push(Step::Bind { source, path, bound: Bound::ReadOnly });
        }
        Ok(steps)
    }

    /// Limits that the kernel keeps for each user namespace, set before /proc/sys is sealed.
    fn settings(&self, nesting: Nesting) -> Result<Vec<Step>, JailError> {
        // What is used inside counts for the caller outside, too, who shall always have some left.
        let mut values: Vec<_> = self.limits.iter().map(|(name, limit)| (*name, limit / 2)).collect();
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
}

/// The same limit of the caller's own; none where the kernel does not have it.
fn limit_outside(name: &str) -> Option<u64> {
    read::text(&Path::new("/proc/sys/user").join(name)).ok()?.trim().parse().ok()
}
