//! What a runtime leaves to init of the walls: where there is but one id, the namespace in which it is the agent's; and a
//! filter on system calls of ours, which not every build of every runtime could put on.
//!
//! It comes before the first other thread, and fails closed: without what it was told to build, init does not start.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{getegid, geteuid};

use crate::arguments::Ids;
use crate::sys;

/// The agent, by user and by group.
const AGENT: u32 = 1000;

/// The largest filter that the kernel takes, in bytes.
const LARGEST_FILTER: usize = 4096 * 8;

/// Builds what was left; the error says what could not be.
pub(crate) fn build(ids: Ids, filter: Option<&Path>) -> Result<(), (&'static str, io::Error)> {
    if ids == Ids::Single {
        become_agent().map_err(|error| ("becoming the agent", error))?;
    }
    if let Some(path) = filter {
        install(path).map_err(|error| ("installing the filter", error))?;
    }
    Ok(())
}

/// Makes a user namespace in which our only id is the agent's. What comes with it, every capability in there, is given up
/// at once.
fn become_agent() -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    sys::make_user_namespace()?;
    // There is one thread, so this is about the process; its numbers were taken while it had its old ones.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{AGENT} {gid} 1"))?;
    fs::write("/proc/self/uid_map", format!("{AGENT} {uid} 1"))?;
    sys::drop_all_capabilities()
}

fn install(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    if bytes.is_empty() || bytes.len() > LARGEST_FILTER || bytes.len() % 8 != 0 {
        return Err(io::Error::other(format!("{} bytes are no filter", bytes.len())));
    }
    sys::install_filter(&bytes)
}
