//! Empties a directory, while somebody else may change it: no link is followed, each directory is held by its
//! descriptor, and what appears anew is removed a bounded number of times. It may be as deep as it likes: a process has
//! only so many descriptors, and a hostile tree more levels.

use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

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
            // The top finds it on its next pass, where there is room beneath it again.
            self.moved += 1;
            let place = format!(".agentbox-removing-{}-{}", std::process::id(), self.moved);
            let top = top.directory.fd().map_err(failed)?;
            return match rustix::fs::renameat(parent, name, top, place.as_bytes()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => Err(failed(errno)),
            };
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
                level.passes += 1;
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

/// Opens a directory, and nothing that is not one itself.
fn enter(parent: BorrowedFd<'_>, name: &[u8], closed: Closed) -> Result<Dir, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if closed == Closed::Opened {
        let found = rustix::fs::openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
        open_up(&found)?;
    }
    Dir::new(rustix::fs::openat(parent, name, flags | OFlags::RDONLY, Mode::empty())?)
}

/// Makes a directory one that its owner may empty. By the link to its descriptor, which leads to nothing else.
fn open_up(directory: &OwnedFd) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(directory)?.st_mode);
    if mode.contains(Mode::RWXU) {
        return Ok(());
    }
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmodat(CWD, link, mode | Mode::RWXU, AtFlags::empty())
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
