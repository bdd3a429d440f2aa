//! The walls of a natively isolated sandbox: user, mount, pid, net, ipc, uts and cgroup namespaces, id maps,
//! a root file system of listed parts, cgroup and resource limits, and the system call filter. Also the walls
//! around the supervisor.
//!
//! This is the owner's side: it runs with the owner's privileges, once, before anything hostile exists, and
//! never reads a byte from inside. After clone it makes only raw system calls on data planned before.

mod anew;
mod blueprint;
mod builder;
mod cgroup;
mod confine;
mod error;
mod filters;
mod fork;
mod helper;
mod idmap;
mod ids;
mod launch;
mod mapped;
mod netlink;
mod network;
mod plan;
mod probe;
mod range;
mod read;
mod root;
pub mod seccomp;
mod step;
mod subordinates;
mod survey;
mod sys;
mod weaken;
mod yard;

pub use anew::{Anew, Ends};
pub use cgroup::{
    Cgroup, CgroupUsage, Controller, Hierarchies, LivingCgroup, remove_directories, thaw_directories,
};
pub use confine::{ConfineError, confine};
pub use error::{Gap, JailError};
pub use fork::{Forked, end, fork};
pub use ids::{IdMap, LoneId};
pub use launch::{Built, Ending, Jailed, Streams, launch};
pub use mapped::{become_mapped, confine_to, map_child};
pub use network::{HandedOut, MOST_HANDED_OUT};
pub use plan::{Granted, Plan, Rooted, Site};
pub use probe::{Finding, Ground, Need, Probe};
pub use root::{
    Direct, INIT_PATH, KEPT, Layered, Layers, OBJECTS, OwnerTools, Seen, Tree, WRITABLE,
    shows_at_its_own_path, tool_environment, tool_path,
};
pub use subordinates::{SubordinateRange, Subordinates};
pub use survey::Survey;
pub use sys::Heritage;
pub use weaken::Weaken;
pub use yard::{Face, complaints, host_limits, report_pids, written_over_image};

/// Takes back every signal that the caller ignored or held back, except the one for broken pipes, which is an error to be
/// read. With SIGCHLD ignored the kernel would keep the end of a child to itself.
pub fn reset_signals() {
    sys::reset_signals();
    // It takes what it is given.
    let _ = sys::unblock_signals();
}

/// Closes every descriptor but the first three. Only for the first moment of a process that has just been
/// executed, when nothing in it owns one of the others yet.
pub fn drop_inherited_descriptors() {
    const FIRST: std::os::fd::RawFd = 3;
    // Where the kernel has no such call, the walls could not be built either, and that is said then.
    let _ = sys::close_from(FIRST);
}
