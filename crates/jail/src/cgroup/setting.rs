//! One limit, written into a cgroup's directory. The files that are there tell v1 from v2.

use std::fs;
use std::io;
use std::path::Path;

use policy::Limits;

use super::Controller;

/// The period over which processor time is limited.
const PERIOD_MICROSECONDS: u64 = 100_000;

/// Whether this directory is where `controller` is limited.
pub(super) fn has(directory: &Path, controller: Controller) -> bool {
    let [unified, legacy] = match controller {
        Controller::Memory => ["memory.max", "memory.limit_in_bytes"],
        Controller::Cpu => ["cpu.max", "cpu.cfs_quota_us"],
        Controller::Pids => ["pids.max"; 2],
    };
    directory.join(unified).exists() || directory.join(legacy).exists()
}

/// Limits one thing.
pub(super) fn set(directory: &Path, controller: Controller, limits: &Limits) -> io::Result<()> {
    let write = |file: &str, value: String| fs::write(directory.join(file), value);
    let is_unified = directory.join("cgroup.controllers").exists();
    match controller {
        Controller::Memory if is_unified => {
            write("memory.max", limits.memory.as_bytes().to_string())?;
            // Without swap accounting this file is absent, and there is no swap to limit.
            let _ = write("memory.swap.max", "0".to_owned());
            Ok(())
        }
        Controller::Memory => set_legacy_memory(directory, limits.memory.as_bytes()),
        Controller::Cpu if is_unified => {
            write("cpu.max", format!("{} {PERIOD_MICROSECONDS}", quota_microseconds(limits)))
        }
        Controller::Cpu => {
            write("cpu.cfs_period_us", PERIOD_MICROSECONDS.to_string())?;
            write("cpu.cfs_quota_us", quota_microseconds(limits).to_string())
        }
        Controller::Pids => write("pids.max", limits.pids.to_string()),
    }
}

/// Memory, and memory and swap together where the kernel counts swap. The second may never be less than the first, so
/// that which one is written first depends on whether the limit grows.
fn set_legacy_memory(directory: &Path, bytes: u64) -> io::Result<()> {
    let (alone, both) =
        (directory.join("memory.limit_in_bytes"), directory.join("memory.memsw.limit_in_bytes"));
    if !both.exists() {
        return fs::write(alone, bytes.to_string());
    }
    let now = fs::read_to_string(&both)?.trim().parse::<u64>().unwrap_or(u64::MAX);
    let [first, second] = if bytes > now { [both, alone] } else { [alone, both] };
    fs::write(first, bytes.to_string())?;
    fs::write(second, bytes.to_string())
}

/// Processor time as the kernel takes it: microseconds in each period.
fn quota_microseconds(limits: &Limits) -> u64 {
    (u64::from(limits.cpus.milli()) * PERIOD_MICROSECONDS / 1000).max(1000)
}
