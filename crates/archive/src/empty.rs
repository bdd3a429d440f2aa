//! Empties a directory, while somebody else may change it: no link is followed, each directory is held by its
//! descriptor, and what appears anew is removed a bounded number of times. It may be as deep as it likes: a process has
//! only so many descriptors, and a hostile tree more levels.

use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// As many directories are held open at once. What is deeper is moved up first.
const DEPTH: usize = 128;

/// How often one directory is looked through before it is believed that somebody keeps filling it.
const PASSES: usize = 64;

/// What becomes of directories below that their owner has closed to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// They stay, and that is an error.
    Refused,
    /// They are opened, where the owner may.
    Opened,
}

/// Why a directory is not empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' cannot be removed", name.escape_ascii())]
pub struct EmptyError {
    /// What could not be removed, by its last name, as far as it is known.
    pub name: Vec<u8>,
    /// What the kernel said.
    #[source]
    pub errno: Errno,
}

/// Empties a directory: how many entries that were. The directory itself stays.
pub fn empty(parent: BorrowedFd<'_>, name: &[u8], closed: Closed) -> Result<u64, EmptyError> {
    let top = enter(parent, name, closed).map_err(failed(b""))?;
    let mut sweep = Sweep { levels: vec![Level::new(top, Vec::new())], closed, removed: 0, moved: 0 };
    sweep.run()?;
    Ok(sweep.removed)
}

/// A directory that is being emptied.
struct Level {
    directory: Dir,
    /// What it is called in the one above.
    name: Vec<u8>,
    passes: usize,
}

impl Level {
    fn new(directory: Dir, name: Vec<u8>) -> Self {
        Self { directory, name, passes: 0 }
    }
}

/// A tree that is being emptied.
struct Sweep {
    levels: Vec<Level>,
    closed: Closed,
    removed: u64,
    /// How many directories were moved up since the top was last looked through.
    moved: u64,
}

type Swept<T> = Result<T, EmptyError>;

fn failed(name: &[u8]) -> impl Fn(Errno) -> EmptyError + Copy {
    move |errno| EmptyError { name: name.to_vec(), errno }
}

impl Sweep {
    /// Empties the first directory.
    fn run(&mut self) -> Swept<()> {
        while let Some(level) = self.levels.last_mut() {
            match level.directory.read() {
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => self.entry(entry.file_name().to_bytes(), entry.file_type())?,
                Some(Err(errno)) => return Err(failed(&level.name)(errno)),
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// Removes an entry of the deepest directory, or goes into it.
    fn entry(&mut self, name: &[u8], kind: FileType) -> Swept<()> {
        let failed = failed(name);
        let is_deepest = self.levels.len() >= DEPTH;
        let (Some(top), Some(level)) = (self.levels.first(), self.levels.last()) else { return Ok(()) };
        let parent = level.directory.fd().map_err(failed)?;
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) => self.removed += 1,
                // Somebody was faster, or has put a directory there, which the next pass finds.
                Err(Errno::NOENT | Errno::ISDIR) => {}
                Err(errno) => return Err(failed(errno)),
            }
            return Ok(());
        }
        if is_deepest {
            let top = top.directory.fd().map_err(failed)?;
            match move_up(parent, name, top, self.closed).map_err(failed)? {
                Gone::Removed => self.removed += 1,
                Gone::Moved => self.moved += 1,
                Gone::Before => {}
            }
            return Ok(());
        }
        match enter(parent, name, self.closed) {
            Ok(directory) => self.levels.push(Level::new(directory, name.to_vec())),
            Err(Errno::NOENT) => {}
            // A link or a file by now, if it ever was a directory.
            Err(Errno::NOTDIR | Errno::LOOP) => match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) => self.removed += 1,
                Err(Errno::NOENT | Errno::ISDIR) => {}
                Err(errno) => return Err(failed(errno)),
            },
            Err(errno) => return Err(failed(errno)),
        }
        Ok(())
    }

    /// Removes the deepest directory, or looks through it again where it is not empty.
    fn leave(&mut self) -> Swept<()> {
        let Some(mut level) = self.levels.pop() else { return Ok(()) };
        let emptied = match self.levels.last() {
            Some(above) => {
                let parent = above.directory.fd().map_err(failed(&level.name))?;
                rustix::fs::unlinkat(parent, &level.name[..], AtFlags::REMOVEDIR)
            }
            None if is_empty(&mut level.directory) => return Ok(()),
            None => Err(Errno::NOTEMPTY),
        };
        match emptied {
            Ok(()) => self.removed += 1,
            Err(Errno::NOTEMPTY) if level.passes < PASSES => {
                // What was moved up by ourselves is no sign of somebody who fills it.
                let by_us = self.levels.is_empty() && std::mem::take(&mut self.moved) > 0;
                level.passes += usize::from(!by_us);
                level.directory.rewind();
                self.levels.push(level);
            }
            // Moved away or replaced: what it was is empty, and what is there now the pass above will see.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(failed(&level.name)(errno)),
        }
        Ok(())
    }
}

/// Whether a directory has nothing in it now.
fn is_empty(directory: &mut Dir) -> bool {
    directory.rewind();
    std::iter::from_fn(|| directory.read())
        .all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")))
}

/// What became of a directory that lies too deep.
enum Gone {
    Removed,
    Moved,
    /// Somebody was faster.
    Before,
}

/// Moves a directory to where there is room beneath it; the top finds it there on its next pass.
fn move_up(parent: BorrowedFd<'_>, name: &[u8], top: BorrowedFd<'_>, closed: Closed) -> Result<Gone, Errno> {
    // One that is empty may be closed as it likes.
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) => return Ok(Gone::Removed),
        Err(Errno::NOENT) => return Ok(Gone::Before),
        // It is not empty, or no directory by now: what is moved is looked at again.
        Err(_) => {}
    }
    // What leaves its directory is changed by that itself.
    let _ = open(parent, name, closed);
    for _ in 0..PASSES {
        let place = format!(".agentbox-removing-{:016x}", random()?);
        match rustix::fs::renameat_with(parent, name, top, place.as_bytes(), RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Gone::Moved),
            Err(Errno::NOENT) => return Ok(Gone::Before),
            // Somebody has guessed it.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

fn random() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Opens a directory to be read.
fn enter(parent: BorrowedFd<'_>, name: &[u8], closed: Closed) -> Result<Dir, Errno> {
    let found = open(parent, name, closed)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Dir::new(rustix::fs::openat(&found, c".", flags, Mode::empty())?)
}

/// Opens a directory, and nothing that is not one itself. Where that is meant, it is made one that its owner may empty.
fn open(parent: BorrowedFd<'_>, name: &[u8], closed: Closed) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
    if closed == Closed::Opened && !mode.contains(Mode::RWXU) {
        // By the link to its descriptor, which leads to nothing else.
        let link = format!("/proc/self/fd/{}", found.as_raw_fd());
        match rustix::fs::chmodat(CWD, link, mode | Mode::RWXU, AtFlags::empty()) {
            // It is somebody else's; whether it can be emptied all the same will show.
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A tree that is deeper than a process may have descriptors or a path may be long.
    fn deep(top: &std::path::Path, depth: usize) {
        let mut directory = fs::File::open(top).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&directory, "d", Mode::RWXU).unwrap();
            let flags = OFlags::DIRECTORY | OFlags::RDONLY;
            directory = rustix::fs::openat(&directory, "d", flags, Mode::empty()).unwrap().into();
        }
    }

    #[test]
    fn a_tree_of_any_depth_is_emptied_and_links_are_not_followed() {
        let (tree, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("kept"), "").unwrap();
        symlink(other.path(), tree.path().join("link")).unwrap();
        deep(tree.path(), 3000);
        let removed = empty(CWD, tree.path().as_os_str().as_encoded_bytes(), Closed::Refused).unwrap();
        assert_eq!(removed, 3001);
        assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 0);
        assert!(other.path().join("kept").exists());
    }

    /// Deeper than the top is ever looked through for somebody else's sake.
    #[test]
    fn nothing_is_too_deep() {
        let tree = tempfile::tempdir().unwrap();
        deep(tree.path(), 20_000);
        let path = tree.path().as_os_str().as_encoded_bytes();
        assert_eq!(empty(CWD, path, Closed::Opened).unwrap(), 20_000);
    }

    #[test]
    fn what_is_closed_where_it_has_to_be_moved_is_removed() {
        for mode in [0o000, 0o555] {
            let tree = tempfile::tempdir().unwrap();
            let mut directory = fs::File::open(tree.path()).unwrap();
            let mut closed = Vec::new();
            for depth in 0..DEPTH + 5 {
                rustix::fs::mkdirat(&directory, "d", Mode::RWXU).unwrap();
                let flags = OFlags::DIRECTORY | OFlags::RDONLY;
                directory = rustix::fs::openat(&directory, "d", flags, Mode::empty()).unwrap().into();
                if depth >= DEPTH - 3 {
                    closed.push(directory.try_clone().unwrap());
                }
            }
            for directory in closed {
                directory.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
            }
            let path = tree.path().as_os_str().as_encoded_bytes();
            assert_eq!(empty(CWD, path, Closed::Opened).unwrap() as usize, DEPTH + 5);
        }
    }

    #[test]
    fn what_is_closed_is_opened_where_that_is_meant() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("closed/inner")).unwrap();
        fs::write(tree.path().join("closed/inner/file"), "").unwrap();
        for path in ["closed/inner", "closed"] {
            fs::set_permissions(tree.path().join(path), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let path = tree.path().as_os_str().as_encoded_bytes();
        if !rustix::process::geteuid().is_root() {
            let refused = empty(CWD, path, Closed::Refused).unwrap_err();
            assert_eq!((refused.name.as_slice(), refused.errno), (&b"closed"[..], Errno::ACCESS));
        }
        assert_eq!(empty(CWD, path, Closed::Opened).unwrap(), 3);
    }
}
