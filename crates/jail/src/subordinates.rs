//! The ids that an ordinary caller may map beside its own: what the machine's files give it, and whether the programs are
//! installed that may map them.

use std::path::Path;

use policy::AGENT_UID;
use rustix::process::geteuid;

use crate::helper::Helper;
use crate::ids::IdMap;
use crate::read;

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
        if !Self::have_helpers() {
            return Self::NoHelper;
        }
        Self::on_file().map_or(Self::NoRange, |(uids, gids)| Self::Given { uids, gids })
    }

    /// Whether the programs are installed that may map them.
    #[must_use]
    pub fn have_helpers() -> bool {
        ["newuidmap", "newgidmap"].iter().all(|name| Helper::find(name).is_some())
    }

    /// The ranges that the machine's files give the caller, whoever may map them.
    #[must_use]
    pub fn on_file() -> Option<(SubordinateRange, SubordinateRange)> {
        let uid = geteuid().as_raw();
        let name = user_name(uid);
        // Both files are about users: a number in the one of groups is no group's.
        let range = |file: &str| subordinate_range(Path::new(file), uid, name.as_deref());
        Some((range("/etc/subuid")?, range("/etc/subgid")?))
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

fn user_name(uid: u32) -> Option<String> {
    let passwd = read::text(Path::new("/etc/passwd")).ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>().ok()? == uid).then(|| name.to_owned())
    })
}

/// The first usable range of a user in one of the files: enough for every id below the agent's.
fn subordinate_range(file: &Path, uid: u32, name: Option<&str>) -> Option<SubordinateRange> {
    parse_subordinate_range(&read::text(file).ok()?, uid, name)
}

fn parse_subordinate_range(text: &str, uid: u32, name: Option<&str>) -> Option<SubordinateRange> {
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let who = fields.next()?;
        let first = fields.next()?.parse().ok()?;
        let count = fields.next()?.parse().ok()?;
        let ours = who == uid || Some(who) == name;
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
