//! What is to be taken: everything that was shown, the changes at some paths, or some pieces of some files; as a tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::Base;
use crate::blobs::Blobs;
use crate::change::{self, Change, Renames, Status};
use crate::commits;
use crate::error::ReviewError;
use crate::git::Git;
use crate::import::Import;
use crate::inert::inert_name;
use crate::journal;
use crate::limits;
use crate::patch;
use crate::record::{Files, Mode};
use crate::review;
use crate::snapshot::Snapshot;
use crate::store::Store;

/// What the owner wants of the changes.
#[derive(Clone, Debug, Default)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Those at these paths and below.
    Paths(Vec<Vec<u8>>),
    /// These pieces of these files, by their numbers; all of a file that has none.
    Pieces(BTreeMap<Vec<u8>, BTreeSet<usize>>),
}

/// What is wanted of an apply.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Whose changes: the sandbox's id.
    pub id: String,
    /// Which of them.
    pub selection: Selection,
    /// The tree that they have to be, or its beginning; else the one that was shown last.
    pub tree: Option<String>,
    /// What becomes of risky changes.
    pub risky: Risky,
    /// What becomes of the agent's own commits.
    pub commits: Commits,
}

/// What becomes of risky changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Risky {
    /// They are taken as others are.
    #[default]
    Taken,
    /// Nothing is taken.
    Refused,
}

/// What becomes of the agent's own commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commits {
    /// They come as they are.
    #[default]
    Kept,
    /// All is one commit.
    Squashed,
}

/// An apply before anything of the owner's is touched.
pub(crate) struct Target {
    pub(crate) store: Store,
    pub(crate) base: Base,
    /// What there is inside.
    pub(crate) snapshot: Snapshot,
    /// What is to be taken of it.
    pub(crate) tree: String,
}

impl Target {
    /// Compares what there is with what was shown, and takes of it what is wanted.
    pub(crate) fn of(files: &Files, order: &Order) -> Result<Self, ReviewError> {
        let store = Store::open(files)?;
        if store.recorded.mode == Mode::Direct {
            return Err(ReviewError::Direct);
        }
        journal::recover(&store)?;
        let base = Base::of(&store)?;
        let snapshot = Snapshot::take(&store, &base, &commits::also_known(&store, &base)?)?;
        let wanted = order.tree.clone().or_else(|| review::shown(&store));
        if let Some(shown) = wanted.filter(|shown| !is_meant(shown, &snapshot.tree)) {
            return Err(ReviewError::Changed { shown, now: snapshot.tree });
        }
        if snapshot.tree == base.tree && commits::accepted(&store).is_none() {
            return Err(ReviewError::Nothing);
        }
        let paths = match &order.selection {
            Selection::Paths(paths) => paths.clone(),
            Selection::Pieces(pieces) => pieces.keys().cloned().collect(),
            Selection::All => Vec::new(),
        };
        if order.risky == Risky::Refused {
            let mut review = review::look(&store, &base, &snapshot, &paths)?;
            let come = paths.is_empty() && order.commits == Commits::Kept;
            if !come {
                review.commits.clear();
            }
            let told = |(path, risk): (&[u8], &crate::risk::Risk)| review::told(path, risk);
            let mut risky: Vec<String> = review.risky().into_iter().map(told).collect();
            let is_cut = review.is_cut || (come && review.are_commits_cut);
            risky.extend(is_cut.then(|| review::UNREAD.to_owned()));
            if !risky.is_empty() {
                return Err(ReviewError::Risky(risky));
            }
        }
        let tree = match &order.selection {
            Selection::All => snapshot.tree.clone(),
            selection => partial(&store, &base, &snapshot, selection)?,
        };
        Ok(Self { store, base, snapshot, tree })
    }
}

fn is_meant(text: &str, tree: &str) -> bool {
    text.len() >= 7 && tree.starts_with(&text.to_ascii_lowercase())
}

/// The changes as they can be chosen from, file by file: the tree that they are, and what was changed at some paths.
pub fn choices(files: &Files, paths: &[Vec<u8>]) -> Result<(String, Vec<Change>), ReviewError> {
    let store = Store::open(files)?;
    journal::recover(&store)?;
    let base = Base::of(&store)?;
    let snapshot = Snapshot::take(&store, &base, &commits::also_known(&store, &base)?)?;
    let mut changes = change::between(&store.git()?, &base.tree, &snapshot.tree, Renames::Ignored)?.changes;
    review::narrow(&mut changes, paths)?;
    check_read(&changes)?;
    Ok((snapshot.tree, changes))
}

/// Nobody chooses from pieces of which not all are there.
fn check_read(changes: &[Change]) -> Result<(), ReviewError> {
    if changes.iter().any(|change| change.is_unread) {
        return Err(ReviewError::TooMuch { what: "bytes of lines", most: limits::PATCH });
    }
    Ok(())
}

/// The base with some of the changes.
fn partial(
    store: &Store,
    base: &Base,
    snapshot: &Snapshot,
    selection: &Selection,
) -> Result<String, ReviewError> {
    let git = store.git()?;
    let changes = match selection {
        Selection::All => change::names(&git, &base.tree, &snapshot.tree)?,
        Selection::Paths(paths) => {
            let mut changes = change::names(&git, &base.tree, &snapshot.tree)?;
            review::narrow(&mut changes, paths)?;
            changes
        }
        Selection::Pieces(pieces) => {
            let difference = change::between(&git, &base.tree, &snapshot.tree, Renames::Ignored)?;
            let is_chosen = |change: &Change| pieces.contains_key(&change.path);
            let mut changes: Vec<Change> = difference.changes.into_iter().filter(is_chosen).collect();
            check_read(&changes)?;
            let mut blobs = Blobs::of(&git);
            for change in &mut changes {
                choose(&git, &mut blobs, change, pieces.get(&change.path))?;
            }
            changes
        }
    };
    let entry = |change: &Change| (change.path.clone(), change.mode.clone(), change.object.clone());
    let entries: Vec<Entry> = changes.iter().map(entry).collect();
    Import::begin(&git.clone().unsynced(), base.beginning())?.with(&entries).finish()
}

/// Makes a change one of only some of its pieces.
fn choose(
    git: &Git,
    blobs: &mut Blobs<'_>,
    change: &mut Change,
    pieces: Option<&BTreeSet<usize>>,
) -> Result<(), ReviewError> {
    let Some(pieces) = pieces.filter(|pieces| !pieces.is_empty() && pieces.len() < change.hunks.len()) else {
        return Ok(());
    };
    let chosen: Vec<&change::Hunk> = pieces.iter().filter_map(|piece| change.hunks.get(*piece)).collect();
    let before = blobs.read(&change.old_object, limits::PATCH)?;
    let after = before.and_then(|before| patch::put_on(&before, &chosen));
    let after = after.ok_or_else(|| ReviewError::NoSuchPath(inert_name(&change.path)))?;
    let object = git.run_with(["hash-object", "-w", "--stdin"], after)?;
    change.object = String::from_utf8_lossy(&object).trim().to_owned();
    if change.status == Status::Deleted {
        // Some of it stays, and so does the file.
        change.mode = change.old_mode.clone();
    }
    Ok(())
}

/// What a path is to become: its mode and its blob; `000000` where it goes.
pub(crate) type Entry = (Vec<u8>, String, String);

/// Puts entries into an index; those without a mode go, and go first.
pub(crate) fn put(git: &Git, entries: &[Entry]) -> Result<(), ReviewError> {
    let is_gone = |entry: &&Entry| entry.1 == "000000";
    let gone = entries.iter().filter(is_gone);
    let mut lines = Vec::new();
    for (path, mode, object) in gone.chain(entries.iter().filter(|entry| !is_gone(entry))) {
        let mode = if mode == "000000" { "0" } else { mode };
        lines.extend_from_slice(format!("{mode} {object}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }
    if !lines.is_empty() {
        git.run_with(["update-index", "-z", "--replace", "--index-info"], lines)?;
    }
    Ok(())
}
