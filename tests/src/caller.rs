//! Who calls agentbox: root, an ordinary user with a range of subordinate ids, one without.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Root.
    Root,
    /// The user `agentbox-sub`, who has a range of subordinate ids.
    Subordinate,
    /// The user `agentbox-plain`, who has none.
    Single,
}

impl Caller {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Root, Self::Subordinate, Self::Single];

    /// Whether tests can run as this caller: as root all that tests/setup.sh made, else only what we are.
    #[must_use]
    pub fn is_available(self) -> bool {
        if geteuid().is_root() { self.ids().is_some() } else { self == Self::ours() }
    }

    /// The name of this caller's user.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Subordinate => "agentbox-sub",
            Self::Single => "agentbox-plain",
        }
    }

    /// The host's user id of this caller.
    #[must_use]
    pub fn uid(self) -> u32 {
        if geteuid().is_root() { self.ids().expect("an available caller").0 } else { geteuid().as_raw() }
    }

    /// The host's group id of this caller.
    #[must_use]
    pub fn gid(self) -> u32 {
        let own = rustix::process::getegid().as_raw();
        if geteuid().is_root() { self.ids().expect("an available caller").1 } else { own }
    }

    /// Whether processes of this caller, or of its sandboxes, have this host's user id. What is no other's is root's.
    #[must_use]
    pub fn has_uid(self, uid: u32) -> bool {
        if !geteuid().is_root() {
            return self == Self::ours();
        }
        let is_of = |caller: Self| {
            caller.is_available()
                && (uid == caller.uid() || caller.ranges().any(|range| range.contains(&uid)))
        };
        match self {
            Self::Root => !is_of(Self::Subordinate) && !is_of(Self::Single),
            _ => is_of(self),
        }
    }

    /// The ranges of subordinate user ids.
    fn ranges(self) -> impl Iterator<Item = Range<u32>> {
        let ranges: Vec<_> = fs::read_to_string("/etc/subuid")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| {
                let fields: Vec<&str> = line.split(':').collect();
                let [name, first, count] = fields[..] else { return None };
                let first: u32 = first.parse().ok()?;
                (name == self.user()).then_some(first..first.checked_add(count.parse().ok()?)?)
            })
            .collect();
        ranges.into_iter()
    }

    /// A program started as this caller, with the environment of a fresh login.
    #[must_use]
    pub fn command(self, program: &Path) -> Command {
        self.command_behind(&[], program, &[])
    }

    /// The same behind another program, which is started by us and starts the rest, and with further variables.
    #[must_use]
    pub fn command_behind(
        self,
        prefix: &[String],
        program: &Path,
        variables: &[(String, String)],
    ) -> Command {
        let mut words = prefix.to_vec();
        let is_us = self == Self::Root || !geteuid().is_root();
        if !is_us {
            // setpriv and env each become the next program, so the process is the caller's own from then on.
            let user = ["/usr/bin/setpriv", "--reuid", self.user(), "--regid", self.user(), "--init-groups"];
            words.extend(user.iter().chain(&["--reset-env", "--", "/usr/bin/env"]).map(ToString::to_string));
            words.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        }
        words.push(program.display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if is_us {
            command.env_clear().env("PATH", PATH).envs(variables.iter().map(|(name, value)| (name, value)));
            command.envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
        }
        command
    }

    /// A new directory of this caller's that everybody may look into; it goes when dropped.
    #[must_use]
    pub fn directory(self) -> TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::Builder::new().prefix("agentbox-test-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        self.own(directory.path());
        directory
    }

    /// Gives a file to this caller.
    pub fn own(self, path: &Path) {
        std::os::unix::fs::chown(path, Some(self.uid()), Some(self.gid())).unwrap();
    }

    fn ids(self) -> Option<(u32, u32)> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, ..] = fields[..] else { return None };
            (name == self.user()).then_some((uid.parse().ok()?, gid.parse().ok()?))
        })
    }

    /// What we are ourselves.
    fn ours() -> Self {
        let uid = geteuid();
        if uid.is_root() {
            return Self::Root;
        }
        let name = std::env::var("USER").unwrap_or_default();
        let has_range = fs::read_to_string("/etc/subuid").unwrap_or_default().lines().any(|line| {
            line.split(':').next().is_some_and(|who| who == name || who == uid.as_raw().to_string())
        });
        if has_range { Self::Subordinate } else { Self::Single }
    }
}
