//! Which ids of the host stand behind the ids inside: a range of root's own for each sandbox, the caller's
//! subuid range, or the caller alone.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use policy::{AGENT_GID, AGENT_UID, Backend, Report, User, Wall};
use rustix::process::{getegid, geteuid};

use crate::error::JailError;
use crate::helper::Helper;
use crate::probe;
use crate::range::IdRanges;
use crate::subordinates::{SubordinateRange, Subordinates};
use crate::yard::Face;

/// Ids inside go from 0 to 65534; the last id of a root's range is the supervisor's and mapped nowhere.
pub(crate) const MAPPED_IDS: u32 = 65535;

/// The id map of one sandbox.
#[derive(Debug)]
pub enum IdMap {
    /// Root: a range of the host's that no other sandbox has. The lock frees it when the keeper ends.
    Range {
        /// The host id of root inside.
        first: u32,
        /// Held as long as the range is in use.
        lock: OwnedFd,
        /// Who makes files in trees of the owner's.
        makers: Makers,
    },
    /// A user with subuids: the agent is the caller, everyone else a subuid.
    Subordinate {
        /// The caller's range of user ids.
        uids: SubordinateRange,
        /// The caller's range of group ids.
        gids: SubordinateRange,
    },
    /// A user without: the agent is the caller, and there is nobody else.
    Single,
}

/// Ids in a row: the first, and how many.
pub(crate) type Piece = (u32, u32);

/// Who makes files in trees of the owner's that root shows under other ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makers {
    /// The agent, as whose they are the owner's.
    Agent,
    /// A kernel of the sandbox's, which is root there and gives each file at once to whom it is for.
    Kernel,
}

/// An id of the host's that nothing else has, for a process of root's that confines itself and has no sandbox. It is that
/// of a supervisor in a range that no sandbox has meanwhile.
#[derive(Debug)]
pub struct LoneId {
    /// The id.
    pub id: u32,
    /// Held as long as it is in use.
    pub lock: OwnedFd,
}

impl LoneId {
    /// Takes one; none where the caller is not root, whose processes stay its own.
    pub fn take(ranges: &Path) -> Result<Option<Self>, JailError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let (first, lock) = IdRanges::open(ranges)?.take()?;
        Ok(Some(Self { id: first + MAPPED_IDS, lock }))
    }
}

impl IdMap {
    /// Chooses the best map that the caller can have, and reports it.
    pub(crate) fn choose(
        subordinates: &Subordinates,
        ranges: &Path,
        report: &mut Report,
    ) -> Result<Self, JailError> {
        if geteuid().is_root() {
            let (first, lock) = IdRanges::open(ranges)?.take()?;
            report.given(Wall::IdRange, format!("{MAPPED_IDS} ids of its own from {first}"));
            return Ok(Self::Range { first, lock, makers: Makers::Agent });
        }
        // Which range is free takes a look at everybody's.
        let hint = "`agentbox doctor` prints the command that gives you a range which nobody has";
        match *subordinates {
            Subordinates::Given { uids, gids } => {
                report.given(Wall::IdRange, format!("subuids from {}", uids.first));
                Ok(Self::Subordinate { uids, gids })
            }
            Subordinates::NoHelper => {
                report.weaker(Wall::IdRange, "one id only: newuidmap is not installed", hint);
                Ok(Self::Single)
            }
            Subordinates::NoRange => {
                report.weaker(Wall::IdRange, "one id only: the caller has no subuid range", hint);
                Ok(Self::Single)
            }
        }
    }

    /// The same for what a backend's kernel does with files.
    #[must_use]
    pub(crate) fn for_backend(mut self, backend: Backend) -> Self {
        if let Self::Range { makers, .. } = &mut self
            && backend.has_own_kernel()
        {
            *makers = Makers::Kernel;
        }
        self
    }

    /// Whether there is a root inside that is not the agent, to own what the agent must not change.
    #[must_use]
    pub const fn has_root(&self) -> bool {
        !matches!(self, Self::Single)
    }

    /// The ids inside, of users and of groups, in the pieces that they were mapped in: the kernel maps on no piece that
    /// lies across two. Each is the first and how many.
    pub(crate) fn pieces(&self) -> (Vec<Piece>, Vec<Piece>) {
        // The agent's own stands between those of the range.
        let around = |agent: u32, range: &SubordinateRange| {
            let above = range.count.saturating_sub(agent).min(MAPPED_IDS - agent - 1);
            let pieces = [(0, agent.min(range.count)), (agent, 1), (agent + 1, above)];
            pieces.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        match self {
            Self::Range { .. } => (vec![(0, MAPPED_IDS)], vec![(0, MAPPED_IDS)]),
            Self::Subordinate { uids, gids } => (around(AGENT_UID, uids), around(AGENT_GID, gids)),
            Self::Single => (vec![(0, 1)], vec![(0, 1)]),
        }
    }

    /// Gives a file to the root of the namespace, who could not open it by its name else: root's own files are nobody's
    /// in there. A caller's are the caller's there, too.
    pub(crate) fn give_to_root(&self, file: &fs::File) -> std::io::Result<()> {
        match self {
            Self::Range { first, .. } => std::os::unix::fs::fchown(file, Some(*first), Some(*first)),
            Self::Subordinate { .. } | Self::Single => Ok(()),
        }
    }

    /// The host id of the agent's user and group.
    #[must_use]
    pub fn host_agent(&self) -> (u32, u32) {
        match self {
            Self::Range { first, .. } => (first + AGENT_UID, first + AGENT_GID),
            Self::Subordinate { .. } | Self::Single => (geteuid().as_raw(), getegid().as_raw()),
        }
    }

    /// The host id for the supervisor, where it gets one of its own.
    #[must_use]
    pub fn supervisor_id(&self) -> Option<u32> {
        match self {
            Self::Range { first, .. } => Some(first + MAPPED_IDS),
            Self::Subordinate { .. } | Self::Single => None,
        }
    }

    /// Refuses a user whom the map does not have.
    pub fn check_user(&self, user: User) -> Result<(), JailError> {
        let mapped = match self {
            Self::Range { .. } => true,
            Self::Subordinate { uids, gids } => user.uid <= uids.count && user.gid <= gids.count,
            Self::Single => user == User::AGENT,
        };
        if mapped {
            return Ok(());
        }
        Err(JailError::UnmappedUser { uid: user.uid, gid: user.gid, only: AGENT_UID })
    }

    /// Refuses an overlay where the kernel does not lay one over trees that are shown under other ids.
    pub(crate) fn check_overlays(&self) -> Result<(), JailError> {
        match self {
            Self::Range { .. } if !probe::has_overlays_for_root() => Err(JailError::NoOverlayForRoot),
            Self::Range { .. } | Self::Subordinate { .. } | Self::Single => Ok(()),
        }
    }

    /// Writes the maps of the process `pid`, which waits for that in a new user namespace, or starts helpers
    /// that do. `face` is what the only one shows as, where it is the only one.
    pub(crate) fn write(&self, pid: i32, face: Face) -> Result<Vec<Helper>, JailError> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        match self {
            Self::Range { first, .. } => {
                let line = format!("0 {first} {MAPPED_IDS}");
                write_map(&process.join("gid_map"), &line)?;
                write_map(&process.join("uid_map"), &line)?;
            }
            Self::Subordinate { uids, gids } => {
                // The two helpers run beside each other: each takes about a millisecond.
                let uid_map = Helper::start("newuidmap", pid, AGENT_UID, geteuid().as_raw(), *uids)?;
                let gid_map = Helper::start("newgidmap", pid, AGENT_GID, getegid().as_raw(), *gids)?;
                uid_map.keep_apart(&gid_map);
                return Ok(vec![uid_map, gid_map]);
            }
            Self::Single => {
                let (uid, gid) = match face {
                    Face::Agent => (AGENT_UID, AGENT_GID),
                    Face::Root => (0, 0),
                };
                write_map(&process.join("setgroups"), "deny")?;
                write_map(&process.join("gid_map"), &format!("{gid} {} 1", getegid().as_raw()))?;
                write_map(&process.join("uid_map"), &format!("{uid} {} 1", geteuid().as_raw()))?;
            }
        }
        Ok(Vec::new())
    }
}

fn write_map(path: &Path, line: &str) -> Result<(), JailError> {
    fs::write(path, line).map_err(|source| JailError::IdMap { what: path.display().to_string(), source })
}
