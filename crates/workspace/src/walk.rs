//! Reads a layer against the base: what was written, what is gone, what git would not take, and what cannot be taken.
//! A directory that git ignores is not looked into.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::base::{Base, is_beneath};
use crate::error::ReviewError;
use crate::git::Git;
use crate::ignore::Ignore;
use crate::layer::{Directory, Entry, Kind};
use crate::limits::Limits;
use crate::nested;
use crate::remark::{Remark, Why};
use crate::seen::Seen;
use crate::staging::Staging;

/// What a layer changes, as far as git would take it.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Paths that were written, and what is there.
    pub(crate) written: BTreeMap<Vec<u8>, Written>,
    /// Paths of the base that are gone.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// Other commits of repositories inside.
    pub(crate) pointers: BTreeMap<Vec<u8>, String>,
    /// What does not come back.
    pub(crate) remarks: Vec<Remark>,
    /// Paths at which the owner has something that is hidden inside.
    pub(crate) over_hidden: BTreeSet<Vec<u8>>,
}

/// A file or a link in a layer, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    File(Seen),
    Link(Seen),
}

impl Written {
    pub(crate) const fn seen(&self) -> &Seen {
        match self {
            Self::File(seen) | Self::Link(seen) => seen,
        }
    }
}

/// A walk through one layer.
pub(crate) struct Walk<'a> {
    pub(crate) base: &'a Base,
    /// What the agent's own commits have beside the base.
    pub(crate) also_known: &'a BTreeSet<Vec<u8>>,
    pub(crate) hidden: &'a BTreeSet<Vec<u8>>,
    pub(crate) git: &'a Git,
    pub(crate) rules: OwnedFd,
    pub(crate) staging: Staging,
    pub(crate) limits: Limits,
    top: Directory,
    ignore: Option<Ignore>,
    ruled: BTreeSet<Vec<u8>>,
    seen: u64,
    bytes: u64,
    found: Walked,
}

impl<'a> Walk<'a> {
    /// Begins at the top of a layer.
    pub(crate) fn new(
        base: &'a Base,
        known: [&'a BTreeSet<Vec<u8>>; 2],
        git: &'a Git,
        rules: OwnedFd,
        staging: Staging,
        top: Directory,
    ) -> Self {
        let [also_known, hidden] = known;
        Self {
            base,
            also_known,
            hidden,
            git,
            rules,
            staging,
            limits: Limits::default(),
            top,
            ignore: None,
            ruled: BTreeSet::new(),
            seen: 0,
            bytes: 0,
            found: Walked::default(),
        }
    }

    /// Goes through all of it.
    pub(crate) fn run(mut self) -> Result<(Walked, Staging, Directory), ReviewError> {
        let top = self.top.directory(b".").map_err(|errno| unreadable(b"", errno))?;
        self.directory(&top, b"", 0)?;
        let written = &self.found.written;
        // What is below a path that was written goes when that takes its place.
        self.found.removed.retain(|path| !is_at_or_below(path, |path| written.contains_key(path)));
        Ok((self.found, self.staging, self.top))
    }

    fn directory(&mut self, directory: &Directory, path: &[u8], depth: usize) -> Result<(), ReviewError> {
        if depth > self.limits.depth {
            return Err(ReviewError::TooMuch { what: "levels", most: self.limits.depth as u64 });
        }
        let notes = directory.notes();
        if notes.is_elsewhere {
            return Err(ReviewError::Layer(path.escape_ascii().to_string()));
        }
        if notes.is_opaque && depth > 0 {
            self.remove_below(path);
        }
        let most = self.limits.entries - self.seen;
        let entries = directory.entries(most).map_err(|errno| unreadable(path, errno))?;
        let entries = entries.ok_or(ReviewError::TooMuch { what: "entries", most: self.limits.entries })?;
        self.seen += entries.len() as u64;
        let entries: Vec<(Vec<u8>, Entry)> =
            entries.into_iter().map(|entry| (joined(path, &entry.name), entry)).collect();
        let entries: Vec<(Vec<u8>, Entry)> =
            entries.into_iter().filter(|(path, entry)| self.is_possible(path, entry)).collect();
        let ignored = self.ignored(directory, path, &entries)?;
        for ((path, entry), is_ignored) in entries.iter().zip(ignored) {
            match entry.kind {
                Kind::Whiteout => self.remove(path),
                Kind::Special => {
                    self.remove(path);
                    if !is_ignored {
                        self.leave(path, Why::Special);
                    }
                }
                Kind::File | Kind::Link if is_ignored => self.remove(path),
                Kind::File => self.write(directory, path, &entry.name, Written::File)?,
                Kind::Link => self.write(directory, path, &entry.name, Written::Link)?,
                Kind::Directory => self.below(directory, path, &entry.name, is_ignored, depth)?,
            }
        }
        Ok(())
    }

    /// Whether git could have something of that name at all.
    fn is_possible(&mut self, path: &[u8], entry: &Entry) -> bool {
        if entry.name == b".git" {
            return false;
        }
        let why = if path.len() > self.limits.path {
            Why::Long
        } else if nested::is_refused(&entry.name, matches!(entry.kind, Kind::Link)) {
            Why::Name
        } else {
            return true;
        };
        if !matches!(entry.kind, Kind::Whiteout) {
            self.leave(path, why);
        }
        false
    }

    fn below(
        &mut self,
        directory: &Directory,
        path: &[u8],
        name: &[u8],
        is_ignored: bool,
        depth: usize,
    ) -> Result<(), ReviewError> {
        let listed = self.base.listing.get(path);
        if let Some(pointer) = listed.filter(|entry| entry.mode == "160000") {
            if has_files(directory, name) {
                self.leave(path, Why::Submodule);
            }
            self.pointer(path, &pointer.object);
            return Ok(());
        }
        if self.base.nested.contains(path) {
            if has_files(directory, name) {
                self.leave(path, Why::Repository);
            }
            return Ok(());
        }
        if listed.is_some() {
            self.found.removed.insert(path.to_vec());
        }
        if is_ignored {
            return Ok(());
        }
        let inner = match directory.directory(name) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.leave(path, Why::Closed);
                return Ok(());
            }
            Err(errno) => return Err(unreadable(path, errno)),
        };
        self.directory(&inner, path, depth + 1)
    }

    fn write(
        &mut self,
        directory: &Directory,
        path: &[u8],
        name: &[u8],
        kind: fn(Seen) -> Written,
    ) -> Result<(), ReviewError> {
        let seen = match directory.look(name) {
            Ok(stat) => Seen::of(&stat),
            // Gone meanwhile; the next look sees it.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(unreadable(path, errno)),
        };
        self.bytes = self.bytes.saturating_add(seen.size);
        if self.bytes > self.limits.bytes {
            return Err(ReviewError::TooMuch { what: "bytes", most: self.limits.bytes });
        }
        self.remove_below(path);
        if is_beneath(self.hidden, path) {
            self.found.over_hidden.insert(path.to_vec());
        }
        self.found.written.insert(path.to_vec(), kind(seen));
        Ok(())
    }

    /// A submodule, which is a commit: its files are its own repository's.
    fn pointer(&mut self, path: &[u8], before: &str) {
        if let Some(commit) = nested::head(&self.top, path, before.len())
            && commit != before
        {
            self.found.pointers.insert(path.to_vec(), commit);
        }
    }

    fn remove(&mut self, path: &[u8]) {
        if self.base.listing.get(path).is_some() {
            self.found.removed.insert(path.to_vec());
        }
        self.remove_below(path);
    }

    fn remove_below(&mut self, path: &[u8]) {
        let gone = self.base.listing.below(path).iter().map(|entry| entry.path.clone());
        self.found.removed.extend(gone);
    }

    fn leave(&mut self, path: &[u8], why: Why) {
        if self.found.remarks.len() < self.limits.remarks {
            self.found.remarks.push(Remark { path: path.to_vec(), why });
        }
    }
}

pub(crate) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Whether anything was written in a repository below, beside what belongs to the repository itself.
fn has_files(directory: &Directory, name: &[u8]) -> bool {
    let entries = directory.directory(name).and_then(|inner| inner.entries(1000));
    !entries.is_ok_and(|entries| entries.is_some_and(|all| all.iter().all(|entry| entry.name == b".git")))
}

/// Whether something holds for a path or for one above it.
fn is_at_or_below(path: &[u8], holds: impl Fn(&[u8]) -> bool) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| holds(path.get(..end).unwrap_or_default()))
}

fn unreadable(path: &[u8], errno: Errno) -> ReviewError {
    ReviewError::File { path: path.escape_ascii().to_string().into(), source: errno.into() }
}
