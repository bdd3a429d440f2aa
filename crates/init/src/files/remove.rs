//! Removing a file or a whole tree, while somebody else may change it: no link is followed, each directory is held by
//! its descriptor, and what appears anew is removed a bounded number of times.

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use wire::{FileCode, FileDone, RemoveFile};

use super::failure::Failure;

/// As many directories are held open at once. What is deeper is moved up first.
const DEPTH: usize = 128;

/// How often one directory is looked through before it is believed that somebody keeps filling it.
const PASSES: usize = 64;

/// Removes what was asked for.
pub(super) fn remove(ask: &RemoveFile) -> Result<FileDone, Failure> {
    let failed = |errno| Failure::system(&ask.path, errno);
    let mut done = FileDone { entries: 1, ..FileDone::default() };
    match rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::empty()) {
        Err(Errno::ISDIR) if ask.recursive => {}
        Err(Errno::ISDIR) => {
            rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::REMOVEDIR).map_err(failed)?;
            return Ok(done);
        }
        removed => return removed.map(|()| done).map_err(failed),
    }
    let top = enter(CWD, &ask.path).map_err(failed)?;
    let mut sweep = Sweep { levels: vec![Level::new(top, Vec::new())], removed: 0, moved: 0 };
    sweep.run().map_err(|(name, errno)| Failure::system(&[&ask.path[..], b"/", &name].concat(), errno))?;
    done.entries += sweep.removed;
    match rustix::fs::unlinkat(CWD, &ask.path[..], AtFlags::REMOVEDIR) {
        // Filled again since, or replaced by a link to somewhere else, which is not what was asked for.
        Err(Errno::NOTEMPTY | Errno::NOTDIR) => Err(Failure::new(FileCode::Changed, &ask.path)),
        removed => removed.map(|()| done).map_err(failed),
    }
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
    removed: u64,
    moved: u64,
}

/// The error and the name it happened at, as far as it is known.
type Swept<T> = Result<T, (Vec<u8>, Errno)>;

impl Sweep {
    /// Empties the first directory.
    fn run(&mut self) -> Swept<()> {
        while let Some(level) = self.levels.last_mut() {
            match level.directory.read() {
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => self.entry(entry.file_name().to_bytes(), entry.file_type())?,
                Some(Err(errno)) => return Err((level.name.clone(), errno)),
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// Removes an entry of the deepest directory, or goes into it.
    fn entry(&mut self, name: &[u8], kind: FileType) -> Swept<()> {
        let failed = |errno| (name.to_vec(), errno);
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
        match enter(parent, name) {
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
                let parent = above.directory.fd().map_err(|errno| (level.name.clone(), errno))?;
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
            Err(errno) => return Err((level.name, errno)),
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
fn enter(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Dir, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}
