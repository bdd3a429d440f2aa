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
use crate::read;
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

/// A line of /etc/subuid or /etc/subgid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubordinateRange {
    /// The first id.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// The ids that the caller may map beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subordinates {
    /// A range of each kind.
    Given {
        /// Of user ids.
        uids: SubordinateRange,
        /// Of group ids.
        gids: SubordinateRange,
    },
    /// The programs that may map them are not installed.
    NoHelper,
    /// The caller has none, or is root, who needs none.
    NoRange,
}

impl Subordinates {
    /// Looks them up.
    #[must_use]
    pub fn find() -> Self {
        if geteuid().is_root() {
            return Self::NoRange;
        }
        if Helper::find("newuidmap").is_none() || Helper::find("newgidmap").is_none() {
            return Self::NoHelper;
        }
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let name = user_name(uid);
        let uids = subordinate_range(Path::new("/etc/subuid"), uid, name.as_deref());
        let gids = subordinate_range(Path::new("/etc/subgid"), gid, name.as_deref());
        match (uids, gids) {
            (Some(uids), Some(gids)) => Self::Given { uids, gids },
            _ => Self::NoRange,
        }
    }

    /// The map of every sandbox of an ordinary user's; root's have each their own.
    #[must_use]
    pub fn map_of_all(self) -> Option<IdMap> {
        match self {
            _ if geteuid().is_root() => None,
            Self::Given { uids, gids } => Some(IdMap::Subordinate { uids, gids }),
            Self::NoHelper | Self::NoRange => Some(IdMap::Single),
        }
    }
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
        let hint = "install newuidmap (Debian: `apt install uidmap`) and give yourself a range: \
                    `sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER`";
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
                uid_map.send_elsewhere();
                let gid_map = Helper::start("newgidmap", pid, AGENT_GID, getegid().as_raw(), *gids)?;
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

fn user_name(uid: u32) -> Option<String> {
    let passwd = read::text(Path::new("/etc/passwd")).ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>().ok()? == uid).then(|| name.to_owned())
    })
}

/// The first usable range for `id` in a subuid file: enough for every id below the agent's.
fn subordinate_range(file: &Path, id: u32, name: Option<&str>) -> Option<SubordinateRange> {
    parse_subordinate_range(&read::text(file).ok()?, id, name)
}

fn parse_subordinate_range(text: &str, id: u32, name: Option<&str>) -> Option<SubordinateRange> {
    let id = id.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let who = fields.next()?;
        let first = fields.next()?.parse().ok()?;
        let count = fields.next()?.parse().ok()?;
        let ours = who == id || Some(who) == name;
        (ours && count >= AGENT_UID).then_some(SubordinateRange { first, count })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_range_by_name_or_id() {
        let text = "root:1:65536\nann:100000:65536\n1001:165536:65536\nbob:9:10\n";
        let range = |first, count| Some(SubordinateRange { first, count });
        assert_eq!(parse_subordinate_range(text, 1000, Some("ann")), range(100_000, 65536));
        assert_eq!(parse_subordinate_range(text, 1001, None), range(165_536, 65536));
        assert_eq!(parse_subordinate_range(text, 1002, Some("bob")), None, "too small to be of use");
        assert_eq!(parse_subordinate_range("garbage\n:::\n", 1000, Some("ann")), None);
    }
}
