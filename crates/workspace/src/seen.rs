//! What a layer looked like when a tree was made of it: as long as it looks the same, the tree is the same, and nothing is
//! read again.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};

use crate::walk::{Walked, Written};

/// A file that was changed so shortly before it was looked at may have been changed again unseen.
const UNSETTLED: Duration = Duration::from_secs(1);

/// A file as it was seen. The kernel sets the last time whenever anything of it is changed, and nobody else can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    inode: u64,
    mode: u32,
    pub(crate) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seen {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "these differ between architectures"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    pub(crate) const fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// What a whole layer looked like, in short; none while it is too young to be told from what it may be next.
pub(crate) fn digest(base: &str, walked: &Walked, now: SystemTime) -> Option<String> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.saturating_sub(UNSETTLED).as_secs();
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(base.as_bytes());
    // What was known before the machine went down may be on the disk without the tree that it names.
    add(&fs::read("/proc/sys/kernel/random/boot_id").ok()?);
    for (path, written) in &walked.written {
        let seen = written.seen();
        if u64::try_from(seen.changed.0).is_ok_and(|changed| changed >= now) {
            return None;
        }
        add(path);
        add(if matches!(written, Written::Link(_)) { b"link" } else { b"file" });
        add(format!("{seen:?}").as_bytes());
    }
    add(b"removed");
    walked.removed.iter().for_each(|path| add(path));
    add(b"pointers");
    for (path, commit) in &walked.pointers {
        add(path);
        add(commit.as_bytes());
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The tree that was made of a layer that looked so.
pub(crate) fn known(file: &Path, digest: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let (known, tree) = text.trim().split_once(' ')?;
    (known == digest).then(|| tree.to_owned())
}

/// Notes what a layer looked like. Nothing is lost with it, so that nobody waits for the disk.
pub(crate) fn note(file: &Path, digest: &str, tree: &str) -> io::Result<()> {
    let unnamed = file.with_extension("new");
    fs::write(&unnamed, format!("{digest} {tree}\n"))?;
    fs::rename(unnamed, file)
}
