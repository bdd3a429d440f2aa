//! What was left in a tree that was worked on directly, where git does not look: repositories that were made inside, and
//! files that run by their name among what is ignored, in submodules and in other repositories. The tree is an enemy's
//! work: it is read beneath descriptors, and git is not run in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::base::{is_beneath, read_paths};
use crate::beneath;
use crate::error::ReviewError;
use crate::inert::inert_name;
use crate::layer::{Directory, Kind};
use crate::limits::Limits;
use crate::record::Mode;
use crate::review::Review;
use crate::risk::{self, Code, Risk};
use crate::secrets::SecretList;
use crate::store::Store;
use crate::survey::{self, MOST};
use crate::walk::joined;

/// Something that runs by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where.
    pub path: Vec<u8>,
    /// Why it is named.
    pub risk: Risk,
    /// The directory that it was found in and that git does not look at; none for a repository.
    pub within: Option<Vec<u8>>,
}

const MADE: Risk = Risk {
    code: Code::Repository,
    reason: "a repository that was not there at the start: git obeys its hooks, its configuration and its fsmonitor",
};

/// Everything of the kind, in a tree that was worked on directly. `unlooked` is what git does not look at.
pub(crate) fn named(store: &Store, unlooked: &[Vec<u8>]) -> Result<Vec<Named>, ReviewError> {
    if store.recorded.mode == Mode::Review {
        return Ok(Vec::new());
    }
    let mut named = repositories(store)?;
    let hidden = read_paths(&store.files.hidden())?;
    let owner = &store.recorded.owner;
    let top = Directory::top(owner).map_err(|errno| ReviewError::file(owner)(errno.into()))?;
    let began = began(&store.files.base())?;
    let mut search = Search { top, hidden, began, seen: 0, named: Vec::new() };
    for path in unlooked {
        search.begin(path)?;
    }
    named.extend(search.named);
    Ok(named)
}

/// Whether the same has been shown before, of a tree that was worked on directly; from now on it has.
pub(crate) fn was_shown(store: &Store, review: &Review) -> Result<bool, ReviewError> {
    let path = store.own("told");
    let told = format!("{} {:?}\n", review.tree, review.named);
    if review.mode == Mode::Review || fs::read_to_string(&path).is_ok_and(|known| known == told) {
        return Ok(review.mode == Mode::Direct);
    }
    fs::write(&path, told).map_err(ReviewError::file(&path))?;
    Ok(false)
}

/// When the base was recorded, after which the first command began: by the clock that the kernel sets times of change by.
fn began(base: &Path) -> Result<(i64, i64), ReviewError> {
    let metadata = fs::metadata(base).map_err(ReviewError::file(base))?;
    Ok((metadata.mtime(), metadata.mtime_nsec()))
}

/// Repositories that are where none was covered.
fn repositories(store: &Store) -> Result<Vec<Named>, ReviewError> {
    let owner = &store.recorded.owner;
    let covered = read_paths(&store.files.covers())?;
    let failed = ReviewError::file(owner);
    let tree = beneath::Directory::open(owner).map_err(failed)?;
    let found = survey::survey(&tree, &SecretList::default())
        .map_err(|error| failed(std::io::Error::other(error.to_string())))?;
    let nested = found.repositories.iter().map(|below| joined(below, b".git"));
    let own = fs::symlink_metadata(owner.join(".git")).is_ok().then(|| b".git".to_vec());
    let all = own.into_iter().chain(nested).chain(found.bare);
    let is_new = |path: &Vec<u8>| !is_beneath(&covered, path);
    Ok(all.filter(is_new).map(|path| Named { path, risk: MADE, within: None }).collect())
}

struct Search {
    top: Directory,
    hidden: BTreeSet<Vec<u8>>,
    began: (i64, i64),
    seen: u64,
    named: Vec<Named>,
}

impl Search {
    /// Looks at a file, or at all below a directory.
    fn begin(&mut self, path: &[u8]) -> Result<(), ReviewError> {
        match self.top.directory(path) {
            Ok(directory) => self.below(directory, path),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                if let Ok(stat) = self.top.find(path) {
                    self.judge(path, &stat, None);
                }
                Ok(())
            }
            // Gone meanwhile, or closed before anybody was inside.
            Err(_) => Ok(()),
        }
    }

    fn below(&mut self, directory: Directory, within: &[u8]) -> Result<(), ReviewError> {
        let (depth, mut waiting) = (Limits::default().depth, vec![(directory, within.to_vec(), 0)]);
        while let Some((directory, path, level)) = waiting.pop() {
            let failed =
                |errno: Errno| ReviewError::File { path: inert_name(&path).into(), source: errno.into() };
            let most = (MOST as u64).saturating_sub(self.seen);
            let entries = directory.entries(most).map_err(failed)?;
            let entries = entries.ok_or(ReviewError::TooMuch { what: "entries", most: MOST as u64 })?;
            self.seen += entries.len() as u64;
            for entry in entries.into_iter().filter(|entry| entry.name != b".git") {
                let path = joined(&path, &entry.name);
                if is_beneath(&self.hidden, &path) {
                    continue;
                }
                match entry.kind {
                    Kind::Directory if level >= depth => {
                        return Err(ReviewError::TooMuch { what: "levels", most: depth as u64 });
                    }
                    Kind::Directory => match directory.directory(&entry.name) {
                        Ok(inner) => waiting.push((inner, path, level + 1)),
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                        Err(errno) => return Err(failed(errno)),
                    },
                    Kind::File | Kind::Link => {
                        if let Ok(stat) = directory.look(&entry.name) {
                            self.judge(&path, &stat, Some(within));
                        }
                    }
                    Kind::Whiteout | Kind::Special => {}
                }
            }
        }
        Ok(())
    }

    /// Names a file that was changed since the start, if it runs by its name. Nobody but the kernel sets the time.
    fn judge(&mut self, path: &[u8], stat: &Stat, within: Option<&[u8]>) {
        if !is_later(stat, self.began) {
            return;
        }
        if let Some(risk) = risk::by_name(path) {
            self.named.push(Named { path: path.to_vec(), risk, within: within.map(<[u8]>::to_vec) });
        }
    }
}

#[expect(clippy::unnecessary_cast, clippy::cast_possible_wrap, reason = "these differ between architectures")]
fn is_later(stat: &Stat, began: (i64, i64)) -> bool {
    let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
    // A file system that keeps whole seconds does not tell more.
    if changed.1 == 0 { changed.0 >= began.0 } else { changed > began }
}
