//! One walk over the owner's tree, by descriptors and by what the kernel lists, without looking at a single file: what may
//! hold a secret, other repositories, and what is no file, directory or link.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use crate::beneath::open_below;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::secrets::{Kind, SecretList};

/// A tree with more entries is refused: a search without an end is no wall.
pub(crate) const MOST: usize = 4_000_000;
/// Deeper directories are refused: a process has only so many descriptors.
const DEEPEST: usize = 256;
/// From so many directories on a second thread helps.
const ENOUGH_FOR_TWO: usize = 128;

/// What was found, as bytes of paths relative to the tree.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files whose name may hold a secret, or that are in a directory that does.
    pub(crate) secrets: Vec<Vec<u8>>,
    /// Such directories.
    pub(crate) secret_directories: Vec<Vec<u8>>,
    /// Directories in which there is a `.git`, beside the tree itself.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// Sockets, pipes and devices.
    pub(crate) special: Vec<Vec<u8>>,
    /// Directories that cannot be looked into.
    pub(crate) closed: Vec<Vec<u8>>,
    entries: usize,
}

/// A directory that is still to be looked into.
struct Waiting {
    parent: Arc<OwnedFd>,
    name: CString,
    path: Vec<u8>,
    depth: usize,
    in_secret: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    at_work: usize,
    seen: usize,
    failure: Option<Errno>,
}

struct Walk<'list> {
    queue: Mutex<Queue>,
    more: Condvar,
    secrets: &'list SecretList,
}

/// Walks over the tree.
pub(crate) fn survey(owner: &Owner, secrets: &SecretList) -> Result<Found, Refusal> {
    let failed = |errno: Errno| match errno {
        Errno::NAMETOOLONG | Errno::TOOBIG => Refusal::TooLarge { path: owner.path().to_owned(), most: MOST },
        errno => Refusal::Unusable { path: owner.path().to_owned(), source: errno.into() },
    };
    let walk = Walk { queue: Mutex::default(), more: Condvar::new(), secrets };
    let mut found = Found::default();
    let root = rustix::io::fcntl_dupfd_cloexec(owner.directory.fd(), 0).map_err(failed)?;
    let top = Waiting {
        parent: Arc::new(root),
        name: CString::default(),
        path: Vec::new(),
        depth: 0,
        in_secret: false,
    };
    let below = walk.look(&Arc::clone(&top.parent), &top, &mut found).map_err(failed)?;
    walk.lock().waiting = below;
    let others = thread::scope(|scope| {
        walk.work(&mut found, ENOUGH_FOR_TWO);
        if walk.lock().waiting.is_empty() {
            return Found::default();
        }
        let second = scope.spawn(|| {
            let mut found = Found::default();
            walk.work(&mut found, usize::MAX);
            found
        });
        walk.work(&mut found, usize::MAX);
        second.join().unwrap_or_default()
    });
    found.add(others);
    if let Some(errno) = walk.lock().failure {
        return Err(failed(errno));
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, other: Self) {
        self.secrets.extend(other.secrets);
        self.secret_directories.extend(other.secret_directories);
        self.repositories.extend(other.repositories);
        self.special.extend(other.special);
        self.closed.extend(other.closed);
        for list in [&mut self.secrets, &mut self.secret_directories, &mut self.repositories] {
            list.sort();
        }
    }
}

impl Walk<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into directories until there are none, or so many are done.
    fn work(&self, found: &mut Found, most: usize) {
        for _ in 0..most {
            let Some(directory) = self.next() else { return };
            let below = self.enter(&directory, found);
            let mut queue = self.lock();
            queue.at_work -= 1;
            queue.seen += std::mem::take(&mut found.entries);
            if queue.seen > MOST {
                queue.failure = Some(Errno::TOOBIG);
            }
            match below {
                Ok(below) => queue.waiting.extend(below),
                Err(errno) => queue.failure = Some(errno),
            }
            drop(queue);
            self.more.notify_all();
        }
    }

    /// The next directory; none when all are done or one has failed. The newest goes first, so that few are open.
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.lock();
        loop {
            if queue.failure.is_some() {
                return None;
            }
            if let Some(directory) = queue.waiting.pop() {
                queue.at_work += 1;
                return Some(directory);
            }
            if queue.at_work == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn enter(&self, directory: &Waiting, found: &mut Found) -> Result<Vec<Waiting>, Errno> {
        let opened = match open_below(directory.parent.as_fd(), &directory.name) {
            Ok(opened) => Arc::new(opened),
            Err(Errno::ACCESS | Errno::PERM) => {
                found.closed.push(directory.path.clone());
                return Ok(Vec::new());
            }
            // It has gone, or become something else meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        };
        if directory.depth > DEEPEST {
            return Err(Errno::NAMETOOLONG);
        }
        self.look(&opened, directory, found)
    }

    /// Looks at what a directory holds: the directories in it.
    fn look(&self, opened: &Arc<OwnedFd>, at: &Waiting, found: &mut Found) -> Result<Vec<Waiting>, Errno> {
        let mut below = Vec::new();
        let mut buffer = Vec::with_capacity(16 << 10);
        let mut entries = RawDir::new(opened.as_fd(), buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            found.entries += 1;
            if bytes == b".git" {
                if at.depth > 0 {
                    found.repositories.push(at.path.clone());
                }
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(status) => FileType::from_raw_mode(status.st_mode),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let path =
                || if at.path.is_empty() { bytes.to_vec() } else { [&at.path, &b"/"[..], bytes].concat() };
            match kind {
                FileType::Directory => {
                    let is_secret = self.secrets.means(&at.path, bytes, Kind::Directory);
                    if is_secret {
                        found.secret_directories.push(path());
                    }
                    below.push(Waiting {
                        parent: Arc::clone(opened),
                        name: name.to_owned(),
                        path: path(),
                        depth: at.depth + 1,
                        in_secret: at.in_secret || is_secret,
                    });
                }
                FileType::RegularFile | FileType::Symlink => {
                    if at.in_secret || self.secrets.means(&at.path, bytes, Kind::Other) {
                        found.secrets.push(path());
                    }
                }
                _ => found.special.push(path()),
            }
        }
        Ok(below)
    }
}
