//! Records the base: what the owner's tree was when the sandbox began, as a git tree in a store of ours. Only what is
//! not in the owner's index as it is on disk is read. Nothing of the owner's is written, not even a lock.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use failpoint::Point;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::ReviewError;
use crate::git::Git;
use crate::layer::Directory;
use crate::listing::Listing;
use crate::names::is_refused;
use crate::preferences::Preferences;
use crate::record::Files;
use crate::store::{Store, copy_index, write_whole};
use crate::target::put;

/// The mode of what is not there.
const GONE: &str = "000000";
/// The list of the base's paths, beside the base.
const LISTING: &str = "listing";
/// The base's own `.gitignore` files, at their paths.
pub(crate) const RULES: &str = "rules";
/// Repositories of the owner's below the tree that are no part of it.
const NESTED: &str = "nested";

/// Records the base of a workspace, unless that is done. Whoever wants to see changes waits for it.
pub fn record_base(files: &Files) -> Result<(), ReviewError> {
    let recorded = Base::of(&Store::open(files)?).map(drop);
    if !files.recorded().exists() {
        // The sandbox was removed meanwhile, and git may have made a directory of it again.
        let review = files.review();
        let _ = fs::remove_dir_all(&review);
        let _ = review.parent().map(fs::remove_dir);
    }
    recorded
}

/// A base that is recorded.
pub(crate) struct Base {
    /// The id of its tree.
    pub(crate) tree: String,
    pub(crate) listing: Listing,
    /// Repositories of the owner's that are no part of it.
    pub(crate) nested: BTreeSet<Vec<u8>>,
}

impl Base {
    /// That of a workspace; it is recorded now if whoever began it did not come to an end.
    pub(crate) fn of(store: &Store) -> Result<Self, ReviewError> {
        let path = store.files.base();
        if !path.exists() {
            record(store)?;
        }
        let tree = fs::read_to_string(&path).map_err(ReviewError::file(&path))?.trim().to_owned();
        let path = store.own(LISTING);
        let listing = Listing::read(&path).map_err(ReviewError::file(&path))?;
        let path = store.own(NESTED);
        let nested = read_paths(&path)?;
        Ok(Self { tree, listing, nested })
    }

    /// Its tree, to make another one of; none where it is empty, as nothing has to be there then.
    pub(crate) fn beginning(&self) -> Option<&str> {
        Some(self.tree.as_str()).filter(|_| !self.listing.entries().is_empty())
    }
}

/// Paths in a file, each ended by a NUL; none where there is no file.
pub(crate) fn read_paths(path: &Path) -> Result<BTreeSet<Vec<u8>>, ReviewError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(ReviewError::file(path))?,
    };
    Ok(split(&text).map(<[u8]>::to_vec).collect())
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == 0).filter(|path| !path.is_empty())
}

fn record(store: &Store) -> Result<(), ReviewError> {
    let owner = &store.recorded.owner;
    if !owner.is_dir() {
        return Err(ReviewError::OwnerGone(owner.clone()));
    }
    store.make(&Preferences::read(&store.recorded)?)?;
    take_index(store)?;
    let none = "0".repeat(if store.object_format() == "sha256" { 64 } else { 40 });
    let git = store.git()?.on(owner).with_index(&store.base_index());
    let hidden = read_paths(&store.files.hidden())?;
    let [taken, nested] = look(&git, owner, &hidden)?;
    // What is beyond a link is gone, whatever is there, and git does not look.
    let top = Directory::top(owner).map_err(|errno| ReviewError::file(owner)(errno.into()))?;
    let (gone, taken): (Vec<_>, Vec<_>) = taken.into_iter().partition(|path| top.lacks(path));
    put(&git, &gone.into_iter().map(|path| (path, GONE.to_owned(), none.clone())).collect::<Vec<_>>())?;
    if !taken.is_empty() {
        git.run_with(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], joined(&taken))?;
    }
    let tree = git.line(["write-tree", "--missing-ok"])?;
    let printed = git.run(["ls-files", "-z", "-s", "-t", "-v"])?;
    let path = store.own(LISTING);
    let listing = Listing::parse(&printed).map_err(ReviewError::file(&path))?;
    write_whole(&path, &printed).map_err(ReviewError::file(&path))?;
    let path = store.own(NESTED);
    write_whole(&path, &joined(&nested)).map_err(ReviewError::file(&path))?;
    unflag(&git, &listing)?;
    keep_rules(store, &git, &listing)?;
    keep_objects(store, &tree)?;
    failpoint::pass(Point::ReviewBaseWritten);
    let path = store.files.base();
    write_whole(&path, format!("{tree}\n").as_bytes()).map_err(ReviewError::file(&path))
}

/// Copies the owner's index: what it says is not read again.
fn take_index(store: &Store) -> Result<(), ReviewError> {
    let Some(repository) = &store.recorded.repository else { return Ok(()) };
    let index = repository.git_dir.join("index");
    if index.exists() {
        copy_index(&index, &store.base_index()).map_err(ReviewError::file(&index))?;
    }
    // One that is split refers to another file beside it.
    let entries = fs::read_dir(&repository.git_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex.")) {
        let path = entry.path();
        copy_index(&path, &store.files.git().join(entry.file_name())).map_err(ReviewError::file(&path))?;
    }
    Ok(())
}

/// What is not as the index says, and what it does not know: paths to take, and repositories to leave alone.
fn look(git: &Git, owner: &Path, hidden: &BTreeSet<Vec<u8>>) -> Result<[Vec<Vec<u8>>; 2], ReviewError> {
    let words = ["ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-standard"];
    let printed = git.run(words)?;
    let (mut taken, mut nested) = (Vec::new(), Vec::new());
    for line in split(&printed) {
        let (tag, path) = (line.first(), line.get(2..).unwrap_or_default());
        if let Some(directory) = path.strip_suffix(b"/") {
            nested.push(directory.to_vec());
        } else if tag != Some(&b'?') || (!is_beneath(hidden, path) && can_be_taken(owner, path)) {
            taken.push(path.to_vec());
        }
    }
    taken.sort();
    taken.dedup();
    Ok([taken, nested])
}

/// Whether a path is one of a list, or below one.
pub(crate) fn is_beneath(list: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    !list.is_empty() && ends.chain([path.len()]).any(|end| list.contains(path.get(..end).unwrap_or_default()))
}

/// What cannot be read, or has a name that git refuses, is not in the base, and keeps nothing else from it.
fn can_be_taken(owner: &Path, path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    let path = owner.join(std::ffi::OsStr::from_bytes(path));
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if names.any(|name| is_refused(name, is_link)) {
        return false;
    }
    is_link || accessat(CWD, &path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}

pub(crate) fn joined(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for path in paths {
        text.extend_from_slice(path);
        text.push(0);
    }
    text
}

/// Entries that git was told not to look at are ordinary ones from now on: the agent's file is what counts.
fn unflag(git: &Git, listing: &Listing) -> Result<(), ReviewError> {
    let mut lines = Vec::new();
    for entry in listing.entries().iter().filter(|entry| entry.is_flagged) {
        lines.extend_from_slice(format!("{} {}\t", entry.mode, entry.object).as_bytes());
        lines.extend_from_slice(&entry.path);
        lines.push(0);
    }
    if !lines.is_empty() {
        git.run_with(["update-index", "-z", "--index-info"], lines)?;
    }
    Ok(())
}

/// Puts the base's own rules of what is ignored where a later look finds them: the owner's may have changed by then.
fn keep_rules(store: &Store, git: &Git, listing: &Listing) -> Result<(), ReviewError> {
    let is_rule = |path: &[u8]| path == b".gitignore" || path.ends_with(b"/.gitignore");
    let rules =
        listing.entries().iter().filter(|entry| is_rule(&entry.path) && entry.mode.starts_with("100"));
    let paths: Vec<Vec<u8>> = rules.map(|entry| entry.path.clone()).collect();
    let directory = store.own(RULES);
    let failed = ReviewError::file(&directory);
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(failed)?;
    }
    fs::create_dir(&directory).map_err(failed)?;
    if paths.is_empty() {
        return Ok(());
    }
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(&directory);
    prefix.push("/");
    let words = ["checkout-index".into(), "-z".into(), "-f".into(), prefix, "--stdin".into()];
    git.run_with(words, joined(&paths))?;
    File::open(&directory).map(drop).map_err(failed)
}

/// Copies what only the owner's index refers to: a clean-up in their repository would take it away.
fn keep_objects(store: &Store, tree: &str) -> Result<(), ReviewError> {
    let Some(repository) = &store.recorded.repository else { return Ok(()) };
    let git = store.git()?;
    let mut wanted = format!("{tree}\n");
    if let Some(commit) = &repository.head.commit {
        if git.line(["rev-parse", &format!("{commit}^{{tree}}")])? == tree {
            return Ok(());
        }
        wanted.push_str(&format!("^{commit}\n"));
    }
    let pack = store.files.git().join("objects/pack/pack");
    let words = ["pack-objects".into(), "-q".into(), "--revs".into(), pack.into_os_string()];
    git.run_with(words, wanted.into_bytes())?;
    Ok(())
}
