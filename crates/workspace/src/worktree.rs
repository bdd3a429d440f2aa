//! Takes changes into the owner's own working tree. A file that the owner has changed since the start is a conflict;
//! everything else is put into place together or not at all. The owner's index is not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};
use rustix::io::Errno;

use crate::branch::writer;
use crate::change::{self, Change};
use crate::error::ReviewError;
use crate::inert::inert_name;
use crate::journal::Journal;
use crate::merge;
use crate::mover::{identity, reach};
use crate::owner_now::OwnerNow;
use crate::plan::{Identity, Plan, Step};
use crate::record::Files;
use crate::review::mark_applied;
use crate::staging::above;
use crate::target::{Commits, Entry, Order, Selection, Target, put};

/// What becomes of files that the owner has changed, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Both {
    /// Nothing is taken.
    #[default]
    Refused,
    /// They are merged, with marks where that cannot be done.
    Merged,
}

/// What became of an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// How many files were written or removed.
    pub count: usize,
    /// Files that have marks in them, or stand beside the owner's.
    pub conflicts: Vec<Vec<u8>>,
    /// Submodules, which only git can bring to another commit.
    pub submodules: Vec<Vec<u8>>,
}

/// Takes the changes into the owner's tree. All or nothing.
pub fn apply_to_worktree(files: &Files, order: &Order, both: Both) -> Result<Brought, ReviewError> {
    // What is in the commits and not in the files does not come.
    let order = &Order { commits: Commits::Squashed, ..order.clone() };
    let target = Target::of(files, order)?;
    let store = &target.store;
    let git = store.git()?;
    let changes = change::names(&git, &target.base.tree, &target.tree)?;
    let paths: BTreeSet<Vec<u8>> = changes.iter().map(|change| change.path.clone()).collect();
    let owner: OwnedFd = File::open(&store.recorded.owner)
        .map_err(|_| ReviewError::OwnerGone(store.recorded.owner.clone()))?
        .into();
    // Before anything is compared: what is another file by the time it is moved was not compared.
    let found = identities(&owner, paths.iter());
    let now = OwnerNow::look(store, &target.base, &paths)?;
    let is_both = |change: &&Change| now.conflicts(&change.path, (&change.mode, &change.object));
    let conflicts: Vec<&Change> = changes.iter().filter(is_both).collect();
    let (mut entries, mut brought) = (entries(&changes), Brought::default());
    if !conflicts.is_empty() {
        let blocked = conflicts.iter().filter(|change| now.blocked.contains(&change.path));
        let refused: Vec<String> = match both {
            Both::Refused => conflicts.iter().map(|change| inert_name(&change.path)).collect(),
            Both::Merged => blocked.map(|change| inert_name(&change.path)).collect(),
        };
        if !refused.is_empty() {
            return Err(ReviewError::Conflicts(refused));
        }
        let yours = now.tree()?;
        let merged = merge::merge(store, &target.base.tree, &yours, &target.tree)?;
        entries = self::entries(&change::names(&git, &yours, &merged.tree)?);
        entries.extend(merged.beside);
        brought.conflicts = merged.conflicts;
    } else {
        // What the owner has done already is left alone.
        entries.retain(|(path, mode, object)| {
            now.changed.get(path).is_none_or(|now| (&now.0, &now.1) != (mode, object))
        });
    }
    let is_submodule = |change: &&Change| change.mode == "160000" || change.old_mode == "160000";
    brought.submodules = changes.iter().filter(is_submodule).map(|change| change.path.clone()).collect();
    entries.retain(|(path, ..)| !brought.submodules.contains(path));
    brought.count = entries.len();
    if !entries.is_empty() {
        bring(&target, order, &entries, &owner, &found)?;
    }
    if matches!(order.selection, Selection::All) {
        mark_applied(store, &target.snapshot.tree)?;
    }
    Ok(brought)
}

fn entries(changes: &[Change]) -> Vec<Entry> {
    let entry = |change: &Change| (change.path.clone(), change.mode.clone(), change.object.clone());
    changes.iter().map(entry).collect()
}

type Found = BTreeMap<Vec<u8>, Option<Identity>>;

fn identities<'a>(owner: &OwnedFd, paths: impl Iterator<Item = &'a Vec<u8>>) -> Found {
    paths.map(|path| (path.clone(), identity(owner, path).ok().flatten())).collect()
}

/// Prepares everything beside the owner's tree, then moves it.
fn bring(
    target: &Target,
    order: &Order,
    entries: &[Entry],
    owner: &OwnedFd,
    found: &Found,
) -> Result<(), ReviewError> {
    let store = &target.store;
    let journal = Journal::begin(store, &order.id)?;
    let prepared = prepare(target, entries, &journal.new_files())
        .and_then(|()| plan(entries, &journal.new_files(), owner, found));
    let plan = prepared.inspect_err(|_| journal.close())?;
    journal.run(&plan)?;
    tidy(owner, entries);
    journal.close();
    Ok(())
}

/// Has git write the files as it would check them out.
fn prepare(target: &Target, entries: &[Entry], place: &Path) -> Result<(), ReviewError> {
    let store = &target.store;
    let index = store.copy_of_base("index-target")?;
    let git = store.git()?.on(place).with_index(&index);
    put(&git, entries)?;
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(place);
    prefix.push("/");
    let mut paths = Vec::new();
    for (path, ..) in entries.iter().filter(|(_, mode, _)| mode != "000000") {
        paths.extend_from_slice(path);
        paths.push(0);
    }
    if !paths.is_empty() {
        let words = ["checkout-index".into(), "-z".into(), "-f".into(), prefix, "--stdin".into()];
        git.run_with(words, paths)?;
    }
    let new: OwnedFd = File::open(place).map_err(ReviewError::file(place))?.into();
    for (path, mode, _) in entries.iter().filter(|(_, mode, _)| mode != "000000") {
        adopt(&new, &store.recorded.owner, path, mode).map_err(|errno| unreadable(path, errno))?;
    }
    Ok(())
}

/// Gives a prepared file the owner and, as far as git says nothing, the mode that the old one has.
fn adopt(place: &OwnedFd, owner: &Path, path: &[u8], mode: &str) -> Result<(), Errno> {
    let (directory, name) = reach(place, path)?;
    if let Some((user, group)) = writer(owner) {
        let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
        rustix::fs::chownat(&directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    let old = owner.join(OsStr::from_bytes(path)).symlink_metadata().ok().filter(fs::Metadata::is_file);
    if let Some(old) = old.filter(|_| mode.starts_with("100")) {
        let is_executable = mode == "100755";
        let kept = old.mode() & 0o777;
        let kept = if is_executable { kept | ((kept & 0o444) >> 2) } else { kept & !0o111 };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let new = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
        rustix::fs::fchmod(new, Mode::from_raw_mode(kept))?;
    }
    Ok(())
}

/// The steps: first everything goes that goes, then directories that are in the way, then everything comes.
fn plan(entries: &[Entry], place: &Path, owner: &OwnedFd, found: &Found) -> Result<Plan, ReviewError> {
    let place: OwnedFd = File::open(place).map_err(ReviewError::file(place))?.into();
    let was =
        |path: &Vec<u8>| found.get(path).copied().unwrap_or_else(|| identity(owner, path).ok().flatten());
    let (mut steps, mut cleared) = (Vec::new(), BTreeSet::new());
    let gone: Vec<&Entry> = entries.iter().filter(|(_, mode, _)| mode == "000000").collect();
    for (path, ..) in &gone {
        if let Some(old) = was(path) {
            steps.push(Step::Delete { path: path.clone(), old });
        }
    }
    let comes: Vec<&Entry> = entries.iter().filter(|(_, mode, _)| mode != "000000").collect();
    for (path, ..) in comes.iter().filter(|(path, ..)| is_directory(owner, path)) {
        let below = [path.as_slice(), b"/"].concat();
        let inner = gone.iter().filter(|(other, ..)| other.starts_with(&below));
        let mut directories: BTreeSet<Vec<u8>> = BTreeSet::from([path.clone()]);
        for (other, ..) in inner {
            let mut directory = above(other);
            while directory.len() > path.len() {
                directories.insert(directory.to_vec());
                directory = above(directory);
            }
        }
        for directory in directories.into_iter().rev() {
            let mode = mode(owner, &directory).unwrap_or(0o755);
            cleared.insert(directory.clone());
            steps.push(Step::RemoveDirectory { path: directory, mode });
        }
    }
    let deleted: BTreeSet<Vec<u8>> = gone.iter().map(|(path, ..)| path.clone()).collect();
    let mut made = BTreeSet::new();
    for (path, ..) in comes {
        make_way(owner, above(path), &deleted, &mut made, &mut steps);
        let new = identity(&place, path).map_err(|errno| unreadable(path, errno))?;
        let new = new.ok_or_else(|| unreadable(path, Errno::NOENT))?;
        let path = path.clone();
        match was(&path).filter(|_| !cleared.contains(&path)) {
            Some(old) => steps.push(Step::Replace { path, old, new }),
            None => steps.push(Step::Add { path, new }),
        }
    }
    Ok(Plan { steps })
}

/// Makes the directories of a path that are not there, or will not be.
fn make_way(
    owner: &OwnedFd,
    directory: &[u8],
    deleted: &BTreeSet<Vec<u8>>,
    made: &mut BTreeSet<Vec<u8>>,
    steps: &mut Vec<Step>,
) {
    if directory.is_empty() || made.contains(directory) {
        return;
    }
    make_way(owner, above(directory), deleted, made, steps);
    if deleted.contains(directory) || made.contains(above(directory)) || !is_directory(owner, directory) {
        made.insert(directory.to_vec());
        steps.push(Step::MakeDirectory { path: directory.to_vec() });
    }
}

fn is_directory(owner: &OwnedFd, path: &[u8]) -> bool {
    mode(owner, path).is_some()
}

fn mode(owner: &OwnedFd, path: &[u8]) -> Option<u32> {
    let (directory, name) = reach(owner, path).ok()?;
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then_some(stat.st_mode & 0o777)
}

/// Removes directories that are empty now, as git does.
fn tidy(owner: &OwnedFd, entries: &[Entry]) {
    for (path, ..) in entries.iter().filter(|(_, mode, _)| mode == "000000") {
        let mut directory = above(path);
        while !directory.is_empty() {
            let removed = reach(owner, directory)
                .and_then(|(above, name)| rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR));
            if removed.is_err() {
                break;
            }
            directory = above(directory);
        }
    }
}

fn unreadable(path: &[u8], errno: Errno) -> ReviewError {
    ReviewError::File { path: inert_name(path).into(), source: errno.into() }
}
