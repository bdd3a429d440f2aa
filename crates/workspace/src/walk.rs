//! Reads a layer against the base: what was written, what is gone, what git would not take, and what cannot be taken.
//! A directory that git ignores is not looked into. A tree that was worked on directly is read in the same way, as far as
//! it is not as it was.

mod below;
mod found;
mod rules;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::base::{Base, is_beneath};
use crate::error::ReviewError;
use crate::git::Git;
use crate::ignore::Ignore;
use crate::layer::{Directory, Entry, Kind, Notes};
use crate::limits::Limits;
use crate::names;
use crate::remark::{Remark, Why};
use crate::seen::Seen;
use crate::staging::Staging;

pub(crate) use found::{Ground, Walked, Written};

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
    ground: Ground,
    ignore: Option<Ignore>,
    ruled: BTreeSet<Vec<u8>>,
    seen: u64,
    names: u64,
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
        (top, ground): (Directory, Ground),
    ) -> Self {
        let [also_known, hidden] = known;
        let mut limits = Limits::default();
        if matches!(ground, Ground::Tree { .. }) {
            limits.entries = crate::survey::MOST as u64;
            limits.names *= 4;
        }
        Self {
            base,
            also_known,
            hidden,
            git,
            rules,
            staging,
            limits,
            top,
            ground,
            ignore: None,
            ruled: BTreeSet::new(),
            seen: 0,
            names: 0,
            bytes: 0,
            found: Walked::default(),
        }
    }

    /// Goes through all of it.
    pub(crate) fn run(mut self) -> Result<(Walked, Staging, Directory), ReviewError> {
        let top = self.top.directory(b".").map_err(|errno| unreadable(b"", errno))?;
        if let Ground::Tree { changed, .. } = &self.ground {
            // What is there in the place of one of them is found on the way.
            let is_gone = |path: &&Vec<u8>| self.top.lacks(path);
            let gone = changed.iter().filter(|path| self.base.listing.get(path).is_some()).filter(is_gone);
            self.found.removed = gone.cloned().collect();
        }
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
        // In a tree anybody may write such notes, and they mean nothing.
        let notes = if self.is_layer() { directory.notes() } else { Notes::default() };
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
        let names: usize = entries.iter().map(|entry| path.len() + entry.name.len() + 1).sum();
        self.names = self.names.saturating_add(names as u64);
        if self.names > self.limits.names {
            return Err(ReviewError::TooMuch { what: "bytes of names", most: self.limits.names });
        }
        let entries: Vec<(Vec<u8>, Entry)> =
            entries.into_iter().map(|entry| (joined(path, &entry.name), entry)).collect();
        let entries: Vec<(Vec<u8>, Entry)> = entries
            .into_iter()
            .filter(|(path, entry)| !self.is_as_it_was(path, entry) && self.is_possible(path, entry))
            .collect();
        let ignored = self.ignored(directory, path, &entries)?;
        for ((path, entry), is_ignored) in entries.iter().zip(ignored) {
            match entry.kind {
                Kind::Whiteout if self.is_layer() => self.remove(path),
                Kind::Special | Kind::Whiteout => {
                    self.remove(path);
                    if !is_ignored {
                        self.leave(path, Why::Special);
                    }
                }
                Kind::File | Kind::Link if is_ignored => {
                    self.remove(path);
                    self.pass(path);
                }
                Kind::File => self.write(directory, path, &entry.name, Written::File)?,
                Kind::Link => self.write(directory, path, &entry.name, Written::Link)?,
                Kind::Directory => self.below(directory, path, &entry.name, is_ignored, depth)?,
            }
        }
        Ok(())
    }

    const fn is_layer(&self) -> bool {
        matches!(self.ground, Ground::Layer)
    }

    /// Whether something in a tree is as the base has it, or was out of reach inside.
    fn is_as_it_was(&self, path: &[u8], entry: &Entry) -> bool {
        let Ground::Tree { changed, .. } = &self.ground else { return false };
        let is_file = matches!(entry.kind, Kind::File | Kind::Link);
        (is_file && self.base.listing.get(path).is_some() && !changed.contains(path))
            || self.hidden.contains(path)
    }

    /// Notes what git does not look at.
    fn pass(&mut self, path: &[u8]) {
        if !self.is_layer() {
            self.found.unlooked.push(path.to_vec());
        }
    }

    /// Whether git could have something of that name at all.
    fn is_possible(&mut self, path: &[u8], entry: &Entry) -> bool {
        if entry.name == b".git" {
            return false;
        }
        let why = if path.len() > self.limits.path {
            Why::Long
        } else if names::is_refused(&entry.name, matches!(entry.kind, Kind::Link)) {
            Why::Name
        } else {
            return true;
        };
        if !matches!(entry.kind, Kind::Whiteout) {
            self.leave(path, why);
        }
        false
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

/// Whether something holds for a path or for one above it.
fn is_at_or_below(path: &[u8], holds: impl Fn(&[u8]) -> bool) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| holds(path.get(..end).unwrap_or_default()))
}

fn unreadable(path: &[u8], errno: Errno) -> ReviewError {
    ReviewError::File { path: path.escape_ascii().to_string().into(), source: errno.into() }
}
