//! What this machine grants, found out by doing: each probe does one thing that the walls are made of, in a
//! child process that ends right after, and says how it went. Nothing is read off a version or a setting where it
//! can be tried, as a security module may grant a namespace and refuse the first mount in it.
//!
//! It stands on the owner's side, before anything hostile exists, and leaves nothing behind.

mod kernel;
mod mounts;
mod netfilter;
mod privileges;
mod sys;
mod trial;

use std::path::Path;

use policy::{State, Wall};
use rustix::process::geteuid;

use crate::error::JailError;
use crate::idmap;
use crate::ids::IdMap;
use crate::step::{Bound, host_path};
use crate::subordinates::Subordinates;
use trial::{Refusal, Trial};

pub(crate) use kernel::has_overlays_for_root;

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the machine grants it.
    pub state: State,
    /// How it is granted, or which step was refused and what the kernel said.
    pub detail: String,
    /// The kernel's error number, where it gave one.
    pub errno: Option<i32>,
}

impl Finding {
    fn given(detail: impl Into<String>) -> Self {
        Self { state: State::Given, detail: detail.into(), errno: None }
    }
}

/// Where the probes that mount something do so, in mount namespaces of their own.
pub struct Ground<'host> {
    /// A directory of the caller's alone.
    pub staging: &'host Path,
    /// The file of locks for root's id ranges.
    pub id_ranges: &'host Path,
}

/// What a sandbox needs the probed thing for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No sandbox starts without it.
    Always,
    /// A wall that is reported where it is missing.
    Reported,
    /// Only this.
    Only(&'static str),
}

macro_rules! probes {
    ($($probe:ident $name:expr, $need:expr, $meaning:literal,)*) => {
        /// One thing that the walls are made of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Probe {
            $(#[doc = $meaning] $probe,)*
        }

        impl Probe {
            /// Every probe, each after those that it builds on.
            pub const ALL: &[Self] = &[$(Self::$probe,)*];

            /// The stable name: the wall's own where it is a wall.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$probe => $name,)* }
            }

            /// What it is needed for.
            #[must_use]
            pub const fn need(self) -> Need {
                match self { $(Self::$probe => $need,)* }
            }

            /// What works where nothing is refused.
            const fn meaning(self) -> &'static str {
                match self { $(Self::$probe => $meaning,)* }
            }
        }
    };
}

probes! {
    Kernel "kernel", Need::Always, "the kernel is new enough",
    UserNamespace Wall::UserNamespace.name(), Need::Always, "made, and ids mapped in it",
    MountNamespace Wall::MountNamespace.name(), Need::Always, "made, a tmpfs mounted in it and become its root",
    PidNamespace Wall::PidNamespace.name(), Need::Always, "made, and its first process is number 1",
    NetNamespace Wall::NetNamespace.name(), Need::Always, "made, and its loopback device raised",
    IpcNamespace Wall::IpcNamespace.name(), Need::Always, "made",
    UtsNamespace Wall::UtsNamespace.name(), Need::Always, "made, and named",
    FreshProc "fresh-proc", Need::Always, "a new /proc mounted for a pid namespace of its own",
    BindMount "bind-mount", Need::Always, "a tree of the host's shown at a second place",
    ReadOnlyTree "read-only-tree", Need::Always, "a tree with all mounts below made read-only at once",
    Devpts "devpts", Need::Always, "terminals of its own mounted",
    Seccomp Wall::Seccomp.name(), Need::Always, "the filter of a sandbox installed, and it refuses",
    Landlock Wall::Landlock.name(), Need::Reported, "files closed off by a rule set",
    CgroupNamespace Wall::CgroupNamespace.name(), Need::Reported, "made",
    DiskLimit Wall::DiskLimit.name(), Need::Reported, "a tmpfs keeps to its size",
    // One id alone is a weaker map; no map at all is no sandbox.
    IdRange Wall::IdRange.name(), Need::Always, "a range of ids mapped, root inside among them",
    IdMappedMount "id-mapped-mount", Need::Only("--mount as root"), "a tree shown with other ids",
    Overlay "overlay", Need::Only("review workspaces"),
        "one directory laid over another in a user namespace",
    NftTproxy "nft-tproxy", Need::Only("sandboxes with a network"),
        "connections led to a socket by nftables in a network namespace of its own",
}

impl Probe {
    /// Does it. Callable from a process with one thread only, as the children are copies of it.
    #[must_use]
    pub fn try_out(self, ground: &Ground<'_>) -> Finding {
        self.attempt(ground).unwrap_or_else(|refusal| Finding {
            state: match self.need() {
                Need::Always | Need::Reported => State::Missing,
                Need::Only(_) => State::Weaker,
            },
            detail: refusal.to_string(),
            errno: refusal.source.raw_os_error(),
        })
    }

    fn attempt(self, ground: &Ground<'_>) -> Result<Finding, Refusal> {
        let staging = host_path(ground.staging)?;
        let done = match self {
            Self::Kernel => return Ok(kernel::version()),
            Self::Landlock => return privileges::landlock(),
            Self::IdRange => return id_range(ground.id_ranges),
            Self::NftTproxy => return netfilter::tproxy(),
            Self::IdMappedMount if !geteuid().is_root() => {
                return Ok(Finding::given("not needed: an ordinary user's files are shown as they are"));
            }
            Self::IdMappedMount => id_mapped_mount(),
            Self::UserNamespace => Trial::namespaces(0).run(&[]),
            Self::PidNamespace => kernel::pid_namespace(),
            Self::NetNamespace => kernel::net_namespace(),
            Self::IpcNamespace => Trial::namespaces(libc::CLONE_NEWIPC).run(&[]),
            Self::UtsNamespace => kernel::uts_namespace(),
            Self::CgroupNamespace => kernel::cgroup_namespace(),
            Self::MountNamespace => mounts::new_root(&staging),
            Self::FreshProc => mounts::fresh_proc(&staging),
            Self::BindMount => mounts::bind(&staging),
            Self::ReadOnlyTree => mounts::read_only_tree(&staging),
            Self::Devpts => mounts::devpts(&staging),
            Self::DiskLimit => mounts::limited_tmpfs(&staging),
            Self::Overlay => mounts::overlay(&staging),
            Self::Seccomp => privileges::seccomp(),
        };
        done.map(|()| Finding::given(self.meaning()))
    }
}

/// The map that a sandbox of this caller's would get, on a process.
fn id_range(ranges: &Path) -> Result<Finding, Refusal> {
    let mut report = policy::Report::default();
    let ids = IdMap::choose(&Subordinates::find(), ranges, &mut report)?;
    Trial::mapped(&ids).run(&[("become root inside", &|| trial::become_root(&ids))])?;
    let line = report.walls().first().map(|line| (line.state, line.detail.clone()));
    let (state, detail) = line.unwrap_or((State::Missing, String::new()));
    Ok(Finding { state, detail, errno: None })
}

/// A tree of the root file system, as that of a mounted directory most often is; attached nowhere.
fn id_mapped_mount() -> Result<(), Refusal> {
    let tree = idmap::tree_for_agent(Path::new("/usr"), &IdMap::Single, (0, 0), Bound::ReadOnly)?;
    drop(tree);
    Ok(())
}

impl From<JailError> for Refusal {
    fn from(error: JailError) -> Self {
        let step = error.to_string();
        let source = match error {
            JailError::IdMap { source, .. }
            | JailError::IdMappedMount { source, .. }
            | JailError::Source { source, .. }
            | JailError::File { source, .. }
            | JailError::Namespaces(source) => source,
            _ => std::io::ErrorKind::Other.into(),
        };
        Self { step, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_walls_keep_theirs() {
        let mut names: Vec<&str> = Probe::ALL.iter().map(|probe| probe.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Probe::ALL.len());
        assert_eq!(Probe::IdRange.name(), Wall::IdRange.name());
    }

    #[test]
    fn every_probe_says_something_and_ends() {
        let directory = tempfile::tempdir().unwrap();
        let ground = Ground { staging: directory.path(), id_ranges: &directory.path().join("ids") };
        for probe in Probe::ALL {
            let finding = probe.try_out(&ground);
            assert!(!finding.detail.is_empty(), "{}", probe.name());
        }
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(left.len() <= 1, "only the file of locks: {left:?}");
    }
}
