//! Watches over what a sandbox that stays writes to the host's disk: its workspace and its outputs, which no kernel
//! limits for an ordinary user. A thread of its own measures, as a tree of a million files takes its time; it is the
//! only one besides the keeper's own, and is started when nothing is cloned any more.
//!
//! Nobody can write without the file system losing room, so that most of the time looking at that is enough.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, statvfs};
use rustix::io::Errno;

/// How often the file system is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often the trees are measured at least: whoever frees room meanwhile hides what is written.
const MEASURE: Duration = Duration::from_secs(10);
/// What measuring may take of one processor: a part in so many.
const SHARE: u32 = 10;
/// Files for each mebibyte, as in the private directories.
const FILES_PER_MEBIBYTE: u64 = 256;
/// So many times the files that may be are counted, and no more: whoever lets it go on wants to know how much there is.
const MANY: u64 = 8;
/// A tree that is deeper is nobody's work.
const DEEPEST: usize = 256;
const BLOCK: u128 = 512;
const STACK: usize = 128 << 10;

/// What trees may hold, and do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    files: u64,
}

impl Amount {
    fn allowed(bytes: u64) -> Self {
        Self { bytes, files: ((bytes >> 20) * FILES_PER_MEBIBYTE).max(4096) }
    }

    const fn exceeds(self, other: Self) -> bool {
        self.bytes > other.bytes || self.files > other.files
    }
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Fine,
    TooMuch(Amount),
    /// What cannot be read cannot be watched.
    Unknown,
}

/// Watches over trees on one file system.
struct Watch {
    trees: Vec<PathBuf>,
    allowed: Amount,
    known: Option<Known>,
}

/// What was measured.
#[derive(Clone, Copy)]
struct Known {
    found: Amount,
    /// What was free in the file system before.
    free: Amount,
    at: Instant,
    took: Duration,
}

/// Starts to watch. A byte comes each time more is there than may be; from then on a tenth of the limit more may be, as
/// it is the owner who lets it go on. Ends when nobody listens.
pub(crate) fn watch(trees: Vec<PathBuf>, limit: u64) -> io::Result<UnixStream> {
    let (mut tell, told) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    let mut watch = Watch { trees, allowed: Amount::allowed(limit), known: None };
    thread::Builder::new().stack_size(STACK).spawn(move || {
        loop {
            thread::sleep(LOOK);
            match watch.look() {
                Looked::Fine => continue,
                Looked::TooMuch(found) => watch.allow(found, limit / 10),
                // Asked of the owner again and again.
                Looked::Unknown => {}
            }
            if tell.write_all(&[0]).is_err() {
                return;
            }
        }
    })?;
    Ok(told)
}

/// Takes one byte away.
pub(crate) fn hear(mut told: &UnixStream) {
    let _ = told.read(&mut [0]);
}

impl Watch {
    /// From now on what is there may be, and so much more.
    fn allow(&mut self, found: Amount, more: u64) {
        let allowed = Amount::allowed(found.bytes.saturating_add(more));
        self.allowed.bytes = self.allowed.bytes.max(allowed.bytes);
        self.allowed.files = self.allowed.files.max(allowed.files).max(found.files + found.files / 10);
    }

    /// Measures, if that could tell anything new.
    fn look(&mut self) -> Looked {
        let Some(system) = self.trees.first().and_then(|tree| statvfs(tree).ok()) else {
            return Looked::Fine;
        };
        let free = Amount { bytes: system.f_bfree.saturating_mul(system.f_frsize), files: system.f_ffree };
        if let Some(Known { found, free: before, at, took }) = self.known {
            let most = Amount {
                bytes: found.bytes.saturating_add(before.bytes.saturating_sub(free.bytes)),
                files: found.files.saturating_add(before.files.saturating_sub(free.files)),
            };
            let is_due = at.elapsed() >= MEASURE || most.exceeds(self.allowed);
            if !is_due || at.elapsed() < took * SHARE {
                return Looked::Fine;
            }
        }
        let begun = Instant::now();
        let measured = measure(&self.trees, self.allowed);
        let found = measured.unwrap_or_default();
        self.known = Some(Known { found, free, at: Instant::now(), took: begun.elapsed() });
        match measured {
            None => Looked::Unknown,
            Some(found) if found.exceeds(self.allowed) => Looked::TooMuch(found),
            Some(_) => Looked::Fine,
        }
    }
}

/// What the trees hold, as far as it is counted; none where a part cannot be read.
fn measure(trees: &[PathBuf], allowed: Amount) -> Option<Amount> {
    let mut found = Amount::default();
    for tree in trees {
        match add(tree, allowed, &mut found) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Adds what one tree holds. Links are counted, never followed.
fn add(tree: &Path, allowed: Amount, found: &mut Amount) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut stack = vec![Dir::new(openat(CWD, tree, flags, Mode::empty())?)?];
    while let Some(directory) = stack.last_mut() {
        let Some(entry) = directory.read().transpose()? else {
            stack.pop();
            continue;
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let parent = directory.fd()?;
        let status = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            // It has gone meanwhile.
            Err(Errno::NOENT) => continue,
            status => status?,
        };
        found.files += 1;
        let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
        // A file of several names is counted as often, a part each time.
        let names = if is_directory { 1 } else { u128::from(status.st_nlink).max(1) };
        let bytes = u128::try_from(status.st_blocks).unwrap_or(0) * BLOCK / names;
        found.bytes = found.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if found.files > allowed.files.saturating_mul(MANY) {
            return Ok(());
        }
        if is_directory {
            let below = match openat(parent, name, flags, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                below => Dir::new(below?)?,
            };
            if stack.len() == DEEPEST {
                return Err(Errno::NAMETOOLONG);
            }
            stack.push(below);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn measured(tree: &Path) -> Amount {
        measure(&[tree.to_owned()], Amount::allowed(1 << 30)).unwrap()
    }

    #[test]
    fn a_tree_is_measured_and_links_are_not_followed() {
        let (tree, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("large"), vec![1; 4 << 20]).unwrap();
        symlink(other.path(), tree.path().join("link")).unwrap();
        fs::create_dir_all(tree.path().join("a/b")).unwrap();
        fs::write(tree.path().join("a/b/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(tree.path().join("a/b/file"), tree.path().join("again")).unwrap();
        let found = measured(tree.path());
        assert!((1 << 20..2 << 20).contains(&found.bytes), "{found:?}");
        assert_eq!(found.files, 5);
    }

    #[test]
    fn what_is_too_much_is_told() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path();
        assert!(!measured(path).exceeds(Amount::allowed(0)));
        fs::write(path.join("file"), vec![1; 1 << 20]).unwrap();
        assert!(measured(path).exceeds(Amount::allowed(1 << 19)));
        // Too many files, although they hold nothing.
        for number in 0..5000 {
            fs::write(path.join(number.to_string()), "").unwrap();
        }
        assert!(measured(path).exceeds(Amount::allowed(16 << 20)));
    }

    #[test]
    fn a_tree_without_a_bottom_is_not_measured() {
        let tree = tempfile::tempdir().unwrap();
        let deep = (0..DEEPEST + 2).fold(tree.path().to_owned(), |path, _| path.join("d"));
        fs::create_dir_all(deep).unwrap();
        assert_eq!(measure(&[tree.path().to_owned()], Amount::allowed(1 << 40)), None);
    }
}
