//! Whose files they are: where somebody's own settings are, and as whom programs are run in what is theirs.

use std::env;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Somebody on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Person {
    /// Whose file it is.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { uid: metadata.uid(), gid: metadata.gid() }
    }

    /// Whose directory it is; whoever calls, where that cannot be told.
    pub(crate) fn of_directory(path: &Path) -> Self {
        let caller = || Self { uid: geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        fs::metadata(path).map_or_else(|_| caller(), |metadata| Self::of(&metadata))
    }

    /// Whom programs are to be run as in what is theirs, where we are somebody else.
    pub(crate) fn other_user(self) -> Option<(u32, u32)> {
        (geteuid().is_root() && self.uid != 0).then_some((self.uid, self.gid))
    }

    /// Their home directory.
    pub(crate) fn home(self) -> Option<PathBuf> {
        match self.other_user() {
            Some((uid, _)) => homes().into_iter().find_map(|(user, home)| (user == uid).then_some(home)),
            None => env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
        }
    }

    /// Where their programs have their settings.
    pub(crate) fn configuration(self) -> Option<PathBuf> {
        let set = env::var_os("XDG_CONFIG_HOME").filter(|set| self.other_user().is_none() && !set.is_empty());
        set.map(PathBuf::from).or_else(|| self.home().map(|home| home.join(".config")))
    }
}

/// The home directories of this machine's users who have one of their own.
pub(crate) fn homes() -> Vec<(u32, PathBuf)> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let uid = fields.next()?.parse().ok()?;
        Some((uid, PathBuf::from(fields.nth(2)?)))
    };
    let is_own = |(_, home): &(u32, PathBuf)| home.is_absolute();
    passwd.lines().filter_map(home).filter(is_own).collect()
}
