//! What the owner has made, since the start, of files that were changed inside. Their tree is theirs and may be edited at
//! any moment: no link in it is followed, and nothing in it is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use crate::base::{Base, is_beneath, joined, read_paths};
use crate::error::ReviewError;
use crate::git::Git;
use crate::import::Import;
use crate::listing::{self, Listing, is_attributes};
use crate::staging::above;
use crate::store::Store;
use crate::target::{Entry, put};

/// The index of what the owner has now.
const INDEX: &str = "index-owner";

/// A file: its mode and its blob; `000000` where there is none.
pub(crate) type Version = (String, String);

/// What the owner has at some paths.
pub(crate) struct OwnerNow {
    /// Those that are not as they were.
    pub(crate) changed: BTreeMap<Vec<u8>, Version>,
    /// Those at which there is something that cannot be compared, or that must not be read.
    pub(crate) blocked: BTreeSet<Vec<u8>>,
    git: Git,
    /// The tree of the base; none where that is empty.
    base: Option<String>,
}

impl OwnerNow {
    /// Looks at some paths of the owner's.
    pub(crate) fn look(store: &Store, base: &Base, paths: &BTreeSet<Vec<u8>>) -> Result<Self, ReviewError> {
        let owner = &store.recorded.owner;
        let root = File::open(owner).map_err(|_| ReviewError::OwnerGone(owner.clone()))?;
        let hidden = read_paths(&store.files.hidden())?;
        let mut ways = Ways { root: root.into(), open: HashMap::new() };
        let (mut blocked, mut readable) = (BTreeSet::new(), Vec::new());
        for path in paths {
            let listed = base.listing.get(path);
            let is_gitlink = listed.is_some_and(|entry| entry.mode == "160000");
            match ways.kind(path) {
                // It was left out of the checkout, and is not gone.
                Ok(None) if listed.is_some_and(|entry| entry.is_flagged) => {}
                Ok(None) => readable.push(path.clone()),
                Ok(Some(FileType::Directory)) if is_gitlink => readable.push(path.clone()),
                Ok(Some(FileType::RegularFile | FileType::Symlink)) if !is_beneath(&hidden, path) => {
                    readable.push(path.clone());
                }
                // A directory that was there makes room if all in it goes; so does a file for a directory.
                Ok(Some(FileType::Directory)) if !base.listing.below(path).is_empty() => {}
                Err(Errno::NOTDIR | Errno::LOOP) if is_cleared(base, paths, path) => {}
                Ok(Some(_)) | Err(_) => drop(blocked.insert(path.clone())),
            }
        }
        let (mut changed, git) = (BTreeMap::new(), store.git()?.unsynced());
        if !readable.is_empty() {
            let seeded = seeded(base, &readable);
            let index = store.files.git().join(INDEX);
            for stale in [&index, &index.with_extension("lock")] {
                match fs::remove_file(stale) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(ReviewError::file(stale)(error));
                    }
                    _ => {}
                }
            }
            let git = git.clone().on(owner).with_index(&index);
            put(&git, &seeded)?;
            let words = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
            git.run_with(words, joined(&readable))?;
            let printed = git.run(["ls-files", "-z", "-s", "-t", "-v"])?;
            let now = Listing::parse(&printed).map_err(ReviewError::file(&index))?;
            let none = "0".repeat(base.tree.len());
            let version = |listing: &Listing, path: &[u8]| match listing.get(path) {
                Some(entry) => (entry.mode.clone(), entry.object.clone()),
                None => ("000000".to_owned(), none.clone()),
            };
            let differs = |path: &Vec<u8>| version(&now, path) != version(&base.listing, path);
            changed = readable
                .into_iter()
                .filter(differs)
                .map(|path| (path.clone(), version(&now, &path)))
                .collect();
        }
        Ok(Self { changed, blocked, git, base: base.beginning().map(str::to_owned) })
    }

    /// Whether a path is not as it was, nor as it is inside.
    pub(crate) fn conflicts(&self, path: &[u8], inside: (&str, &str)) -> bool {
        let differs = |now: &Version| (now.0.as_str(), now.1.as_str()) != inside;
        self.blocked.contains(path) || self.changed.get(path).is_some_and(differs)
    }

    /// The base with what the owner has at these paths, as a tree.
    pub(crate) fn tree(&self) -> Result<String, ReviewError> {
        let entry =
            |(path, (mode, object)): (&Vec<u8>, &Version)| (path.clone(), mode.clone(), object.clone());
        let entries: Vec<Entry> = self.changed.iter().map(entry).collect();
        Import::begin(&self.git, self.base.as_deref())?.with(&entries).finish()
    }
}

/// What git has to know before it looks at paths: what each was, and the attributes, which may be in no file. All else of
/// the base is not read for it.
fn seeded(base: &Base, paths: &[Vec<u8>]) -> Vec<Entry> {
    let asked = paths.iter().filter_map(|path| base.listing.get(path));
    let attributes = base.listing.entries().iter().filter(|entry| is_attributes(&entry.path));
    let entry = |entry: &listing::Entry| (entry.path.clone(), entry.mode.clone(), entry.object.clone());
    asked.chain(attributes).map(entry).collect()
}

/// Whether a file of the base's that is in the way of a path is one of those that are looked at themselves.
fn is_cleared(base: &Base, paths: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let mut directory = above(path);
    while !directory.is_empty() {
        if base.listing.get(directory).is_some() {
            return paths.contains(directory);
        }
        directory = above(directory);
    }
    false
}

/// Directories of the owner's, reached without following a link.
struct Ways {
    root: OwnedFd,
    open: HashMap<Vec<u8>, Result<OwnedFd, Errno>>,
}

impl Ways {
    /// What is at a path; nothing, or an error where the way there is barred.
    fn kind(&mut self, path: &[u8]) -> Result<Option<FileType>, Errno> {
        let directory = above(path);
        let name = path.get(if directory.is_empty() { 0 } else { directory.len() + 1 }..).unwrap_or_default();
        let stat = if directory.is_empty() {
            statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW)
        } else {
            if !self.open.contains_key(directory) {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                let opened = openat2(&self.root, directory, flags, Mode::empty(), resolve);
                self.open.insert(directory.to_vec(), opened);
            }
            match self.open.get(directory) {
                Some(Ok(held)) => statat(held, name, AtFlags::SYMLINK_NOFOLLOW),
                Some(Err(errno)) => Err(*errno),
                None => Err(Errno::NOENT),
            }
        };
        match stat {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}
