//! One walk over the owner's tree, by descriptors and by what the kernel lists, without looking at a single file: what may
//! hold a secret, other repositories, and what is no file, directory or link.

mod found;

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use crate::beneath::{Directory, open_below};
use crate::refusal::Refusal;
use crate::secrets::{Kind, SecretList};

pub(crate) use found::Found;

/// A tree with more entries is refused: a search without an end is no wall.
pub(crate) const MOST: usize = 4_000_000;
/// Deeper directories are refused: a process has only so many descriptors.
const DEEPEST: usize = 256;
/// What the kernel lists at once, in bytes.
const LISTED: usize = 32 << 10;
/// From so many directories on a second thread helps.
const ENOUGH_FOR_TWO: usize = 128;

/// What makes a directory a repository, for git.
const PARTS: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];

/// A directory that is still to be looked into.
struct Waiting {
    parent: Arc<OwnedFd>,
    name: CString,
    path: Vec<u8>,
    depth: usize,
    in_secret: bool,
}

/// What the two threads share: directories that one has left for the other.
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
    /// Whether somebody has nothing to do: only then anything is shared.
    is_idle: AtomicBool,
    secrets: &'list SecretList,
}

/// What one thread has: nothing of it is made anew for each directory.
struct Worker {
    found: Found,
    /// Directories that it still has to look into.
    own: Vec<Waiting>,
    /// For what the kernel lists.
    buffer: Vec<u8>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { found: Found::default(), own: Vec::new(), buffer: Vec::with_capacity(LISTED) }
    }
}

/// Walks over the tree.
pub(crate) fn survey(tree: &Directory, secrets: &SecretList) -> Result<Found, Refusal> {
    let failed = |errno: Errno| match errno {
        Errno::NAMETOOLONG | Errno::TOOBIG => Refusal::TooLarge { path: tree.path().to_owned(), most: MOST },
        errno => Refusal::Unusable { path: tree.path().to_owned(), source: errno.into() },
    };
    let walk =
        Walk { queue: Mutex::default(), more: Condvar::new(), is_idle: AtomicBool::new(false), secrets };
    let mut worker = Worker::default();
    let parent = Arc::new(open_below(tree.fd(), c".").map_err(failed)?);
    let top = Waiting { parent, name: c".".to_owned(), path: Vec::new(), depth: 0, in_secret: false };
    worker.own.push(top);
    for _ in 0..ENOUGH_FOR_TWO {
        let Some(directory) = worker.own.pop() else { return Ok(worker.found) };
        walk.enter(&directory, &mut worker).map_err(failed)?;
    }
    walk.lock().waiting = std::mem::take(&mut worker.own);
    let others = thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut worker = Worker::default();
            walk.work(&mut worker);
            worker.found
        });
        walk.work(&mut worker);
        second.join().unwrap_or_default()
    });
    let mut found = worker.found;
    found.add(others);
    match walk.lock().failure {
        Some(errno) => Err(failed(errno)),
        None => Ok(found),
    }
}

impl Walk<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into directories until there are none. Each thread has its own, and leaves some to one that has none.
    fn work(&self, worker: &mut Worker) {
        while let Some(directory) = self.next() {
            worker.own.push(directory);
            let mut failure = None;
            while let Some(directory) = worker.own.pop() {
                if let Err(errno) = self.enter(&directory, worker) {
                    failure = Some(errno);
                    worker.own.clear();
                }
                if worker.own.len() > 1 && self.is_idle.swap(false, Ordering::Relaxed) {
                    // The oldest are likely to hold the most.
                    let newer = worker.own.split_off(worker.own.len() / 2);
                    self.lock().waiting.extend(std::mem::replace(&mut worker.own, newer));
                    self.more.notify_all();
                }
            }
            let mut queue = self.lock();
            queue.at_work -= 1;
            queue.seen += std::mem::take(&mut worker.found.entries);
            if queue.seen > MOST {
                failure = Some(Errno::TOOBIG);
            }
            queue.failure = queue.failure.or(failure);
            drop(queue);
            self.more.notify_all();
        }
    }

    /// Something that was left; none when all is done or something has failed.
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
            self.is_idle.store(true, Ordering::Relaxed);
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn enter(&self, directory: &Waiting, worker: &mut Worker) -> Result<(), Errno> {
        let opened = match open_below(directory.parent.as_fd(), &directory.name) {
            Ok(opened) => Arc::new(opened),
            Err(Errno::ACCESS | Errno::PERM) => {
                worker.found.closed.push(directory.path.clone());
                return Ok(());
            }
            // It has gone, or become something else meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        if directory.depth > DEEPEST {
            return Err(Errno::NAMETOOLONG);
        }
        self.look(&opened, directory, worker)
    }

    /// Looks at what a directory holds.
    fn look(&self, opened: &Arc<OwnedFd>, at: &Waiting, worker: &mut Worker) -> Result<(), Errno> {
        let Worker { found, own, buffer } = worker;
        let mut entries = RawDir::new(opened.as_fd(), buffer.spare_capacity_mut());
        let mut parts = 0;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            found.entries += 1;
            if found.entries > MOST {
                return Err(Errno::TOOBIG);
            }
            if bytes == b".git" {
                if at.depth > 0 {
                    found.repositories.push(at.path.clone());
                }
                continue;
            }
            parts += usize::from(PARTS.contains(&bytes));
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
                    own.push(Waiting {
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
        if parts == PARTS.len() && at.depth > 0 {
            found.bare.push(at.path.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn all_of_a_large_tree_is_seen_by_two() {
        let tree = tempfile::tempdir().unwrap();
        let at = |path: &str| tree.path().join(path);
        for number in 0..400 {
            fs::create_dir_all(at(&format!("d{}/e{number}/f", number % 7))).unwrap();
            fs::write(at(&format!("d{}/e{number}/f/.env", number % 7)), "").unwrap();
            fs::write(at(&format!("d{}/e{number}/main.rs", number % 7)), "").unwrap();
        }
        fs::create_dir_all(at("d0/nested/.git/.ssh")).unwrap();
        fs::create_dir_all(at("d1/.ssh/keys")).unwrap();
        fs::write(at("d1/.ssh/keys/any"), "").unwrap();
        let _listener = UnixListener::bind(at("d2/a.sock")).unwrap();
        fs::create_dir_all(at("d3/kept.git/refs")).unwrap();
        fs::create_dir_all(at("d3/kept.git/objects")).unwrap();
        fs::write(at("d3/kept.git/HEAD"), "").unwrap();
        let found = survey(&Directory::open(tree.path()).unwrap(), &SecretList::default()).unwrap();
        assert_eq!(found.bare, [b"d3/kept.git".to_vec()]);
        assert_eq!(found.secrets.len(), 401);
        assert_eq!(found.secret_directories, [b"d1/.ssh".to_vec()]);
        assert_eq!(found.repositories, [b"d0/nested".to_vec()]);
        assert_eq!(found.special, [b"d2/a.sock".to_vec()]);
    }

    #[test]
    fn a_tree_without_a_bottom_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let deep = (0..DEEPEST + 4).fold(tree.path().to_owned(), |path, _| path.join("d"));
        fs::create_dir_all(deep).unwrap();
        let tree = Directory::open(tree.path()).unwrap();
        assert!(matches!(survey(&tree, &SecretList::default()), Err(Refusal::TooLarge { .. })));
    }
}
