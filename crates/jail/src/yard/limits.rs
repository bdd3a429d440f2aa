//! What a runtime, or a kernel of the sandbox's own, needs beside what runs inside.

use policy::{Backend, Limits};

/// What the host's cgroup has to grant so that `limits` can be reached inside: a runtime has threads of its own, and a
/// kernel inside needs several for one of the sandbox's. Where that kernel is refused one, it does not survive it.
#[must_use]
pub fn host_limits(backend: Backend, limits: &Limits) -> Limits {
    // One, and those through which it becomes init; a program in Go has a dozen, and more on a larger machine.
    const CRUN_THREADS: u32 = 4;
    const RUNC_THREADS: u32 = 64;
    const KERNEL_FACTOR: u32 = 4;
    const KERNEL_THREADS: u32 = 512;
    let pids = limits.pids.count();
    let pids = match backend {
        Backend::Native => pids,
        Backend::Crun => pids.saturating_add(CRUN_THREADS),
        Backend::Runc => pids.saturating_add(RUNC_THREADS),
        Backend::Gvisor => pids.saturating_mul(KERNEL_FACTOR).saturating_add(KERNEL_THREADS),
    };
    Limits { pids: policy::Pids::new(pids), ..*limits }
}
