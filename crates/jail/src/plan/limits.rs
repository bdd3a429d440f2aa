//! Resource limits that hold where no cgroup does, or beside it.

use policy::{Report, SandboxSpec, State, Wall};

use crate::{sys, yard};

/// The most descriptors that a process inside has.
const DESCRIPTORS: u64 = 65536;

/// Resource limits that hold where no cgroup does, or beside it. Never RLIMIT_AS: a JVM or a Go program maps
/// far more than it uses.
pub(super) fn resource_limits(spec: &SandboxSpec, report: &Report) -> Vec<(u32, u64)> {
    let mut limits = vec![(sys::LIMIT_CORE, 0)];
    // What a kernel of its own has open is what all that runs inside has.
    if !spec.backend.has_own_kernel() {
        limits.push((sys::LIMIT_FILES, DESCRIPTORS));
    }
    if report.state(Wall::PidsLimit) != State::Given && !spec.backend.has_own_kernel() {
        // Counted in each user namespace on its own since Linux 5.14. A runtime needs some for itself, beside those inside.
        let pids = yard::host_limits(spec.backend, &spec.limits).pids;
        limits.push((sys::LIMIT_PROCESSES, u64::from(pids.count())));
    }
    limits
}

/// The resource limits of what a runtime starts. With a kernel of its own processes are counted by that; the host's
/// count only bounds what it needs for them.
pub(super) fn inner_limits(spec: &SandboxSpec, limits: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let most_files =
        rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    // Nobody may have more than the caller has, and a runtime that is told so does not start.
    let most_processes =
        rustix::process::getrlimit(rustix::process::Resource::Nproc).maximum.unwrap_or(u64::MAX);
    let mut limits: Vec<(u32, u64)> = limits
        .iter()
        .map(|(resource, value)| match *resource {
            sys::LIMIT_FILES => (*resource, (*value).min(most_files)),
            sys::LIMIT_PROCESSES => (*resource, u64::from(spec.limits.pids.count()).min(most_processes)),
            _ => (*resource, *value),
        })
        .collect();
    if spec.backend.has_own_kernel() {
        limits.push((sys::LIMIT_FILES, DESCRIPTORS.min(most_files)));
        limits.push((sys::LIMIT_PROCESSES, u64::from(spec.limits.pids.count())));
    }
    limits
}
