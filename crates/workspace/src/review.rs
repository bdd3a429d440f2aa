//! What an owner looks at: the changes since the start, what speaks for a look at each, which of them the owner has
//! changed as well, the commits, and what does not come back.

use std::fs;

use crate::aftermath::{self, Named};
use crate::base::Base;
use crate::blobs::Blobs;
use crate::change::{self, Change, Renames};
use crate::commits::{self, Commit};
use crate::error::ReviewError;
use crate::git::Git;
use crate::journal;
use crate::owner_now::OwnerNow;
use crate::record::{Files, Mode};
use crate::remark::Remark;
use crate::risk::{self, Known, Risk};
use crate::snapshot::Snapshot;
use crate::store::{Store, write_whole};
use crate::waiting;

/// The tree that was shown last.
const SHOWN: &str = "shown";

/// Everything that waits for the owner.
#[derive(Clone, Debug)]
pub struct Review {
    /// What it is now.
    pub tree: String,
    /// What it was.
    pub base: String,
    /// The commit that everything began with.
    pub base_commit: Option<String>,
    /// The files that differ.
    pub files: Vec<Reviewed>,
    /// The agent's commits, the oldest first, and what each of them changed.
    pub commits: Vec<(Commit, Vec<Reviewed>)>,
    /// What does not come back.
    pub remarks: Vec<Remark>,
    /// Whether there were more lines than are shown.
    pub is_cut: bool,
    /// Whether there is more in the commits than was looked at.
    pub(crate) are_commits_cut: bool,
    /// How the tree was worked on. Directly, the owner's own edits since the start cannot be told from the agent's.
    pub mode: Mode,
    /// What runs by its name and is in no tree of git's; only where it was worked on directly.
    pub named: Vec<Named>,
    /// Whether the same was shown as a whole before.
    pub was_shown: bool,
}

/// One changed file.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// What was changed.
    pub change: Change,
    /// What speaks for a look.
    pub risks: Vec<Risk>,
    /// Whether the owner has changed it, too.
    pub conflict: bool,
}

impl Review {
    /// Whether there is nothing to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree == self.base && self.commits.is_empty() && self.named.is_empty()
    }

    /// Everything that the owner may not want without a look: where, and why.
    #[must_use]
    pub fn risky(&self) -> Vec<(&[u8], &Risk)> {
        let commits = self.commits.iter().flat_map(|(_, files)| files);
        let all = self.files.iter().chain(commits);
        let mut found: Vec<(&[u8], &Risk)> = Vec::new();
        for file in all {
            for risk in file.risks.iter().filter(|risk| !risk.code.is_note()) {
                let path = file.change.path.as_slice();
                if !found.iter().any(|(other, known)| *other == path && known.code == risk.code) {
                    found.push((path, risk));
                }
            }
        }
        found.extend(self.named.iter().map(|named| (named.path.as_slice(), &named.risk)));
        found
    }
}

/// Shows the changes at some paths, or all. What was shown is what `apply` takes.
pub fn review(files: &Files, paths: &[Vec<u8>]) -> Result<Review, ReviewError> {
    let store = Store::open(files)?;
    journal::recover(&store)?;
    let base = Base::of(&store)?;
    let snapshot = Snapshot::take(&store, &base, &commits::also_known(&store, &base)?)?;
    let mut review = look(&store, &base, &snapshot, paths)?;
    if paths.is_empty() {
        review.named = aftermath::named(&store, &snapshot.unlooked)?;
        review.was_shown = aftermath::was_shown(&store, &review)?;
    }
    let path = store.own(SHOWN);
    fs::write(&path, format!("{}\n", review.tree)).map_err(ReviewError::file(&path))?;
    Ok(review)
}

/// What was shown last; none where nothing was.
pub(crate) fn shown(store: &Store) -> Option<String> {
    fs::read_to_string(store.own(SHOWN)).ok().map(|text| text.trim().to_owned())
}

/// Says that a tree has been taken.
pub(crate) fn mark_applied(store: &Store, tree: &str) -> Result<(), ReviewError> {
    let path = store.own("applied");
    write_whole(&path, format!("{tree}\n").as_bytes()).map_err(ReviewError::file(&path))?;
    waiting::forget(store)
}

pub(crate) fn look(
    store: &Store,
    base: &Base,
    snapshot: &Snapshot,
    paths: &[Vec<u8>],
) -> Result<Review, ReviewError> {
    let git = store.git()?;
    // What the owner has is looked at while the trees are compared.
    let (difference, now) = std::thread::scope(|scope| {
        let now = scope.spawn(|| owner_now(store, base, snapshot));
        let difference = change::between(&git, &base.tree, &snapshot.tree, Renames::Found);
        (difference, now.join())
    });
    let (difference, now) = (difference?, now.unwrap_or(Ok(None))?);
    let mut changes = difference.changes;
    narrow(&mut changes, paths)?;
    let known = |change: &Change| Known {
        size: snapshot.sizes.get(&change.path).copied(),
        is_over_hidden: snapshot.over_hidden.contains(&change.path),
        texts: None,
    };
    let (mut files, mut blobs) = (Vec::new(), Blobs::of(&git));
    for change in changes {
        let conflict = now.as_ref().is_some_and(|now| conflicts(now, &change));
        let risks = judge(&mut blobs, &change, known(&change))?;
        files.push(Reviewed { change, risks, conflict });
    }
    let (commits, are_commits_cut) = reviewed_commits(store, &git)?;
    Ok(Review {
        tree: snapshot.tree.clone(),
        base: base.tree.clone(),
        base_commit: store.base_commit().map(str::to_owned),
        files,
        commits,
        remarks: snapshot.remarks.clone(),
        is_cut: difference.is_cut,
        are_commits_cut,
        mode: store.recorded.mode,
        named: Vec::new(),
        was_shown: false,
    })
}

/// Leaves the changes at some paths; each of them has to name one.
pub(crate) fn narrow(changes: &mut Vec<Change>, paths: &[Vec<u8>]) -> Result<(), ReviewError> {
    let is_at = |change: &Change, path: &[u8]| {
        let is_below = |other: &[u8]| {
            other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        path.is_empty() || is_below(&change.path) || change.old_path.as_deref().is_some_and(is_below)
    };
    if let Some(path) = paths.iter().find(|path| !changes.iter().any(|change| is_at(change, path))) {
        return Err(ReviewError::NoSuchPath(crate::inert::inert_name(path)));
    }
    if !paths.is_empty() {
        changes.retain(|change| paths.iter().any(|path| is_at(change, path)));
    }
    Ok(())
}

/// What the owner has where something was changed; none where their directory is gone.
fn owner_now(store: &Store, base: &Base, snapshot: &Snapshot) -> Result<Option<OwnerNow>, ReviewError> {
    let paths = snapshot.touched();
    if paths.is_empty() || store.recorded.mode == Mode::Direct {
        return Ok(None);
    }
    match OwnerNow::look(store, base, &paths) {
        Err(ReviewError::OwnerGone(_)) => Ok(None),
        now => now.map(Some),
    }
}

fn conflicts(now: &OwnerNow, change: &Change) -> bool {
    let gone = "0".repeat(change.object.len());
    let old = change.old_path.as_deref();
    now.conflicts(&change.path, (&change.mode, &change.object))
        || old.is_some_and(|path| now.conflicts(path, ("000000", &gone)))
}

/// What in the commits the owner may not want without a look, as it is told.
pub(crate) fn risky_commits(store: &Store, git: &Git) -> Result<Vec<String>, ReviewError> {
    let (commits, is_cut) = reviewed_commits(store, git)?;
    let files = commits.iter().flat_map(|(_, files)| files);
    let risks = files.flat_map(|file| file.risks.iter().map(|risk| (&file.change.path, risk)));
    let risks = risks.filter(|(_, risk)| !risk.code.is_note());
    let risks = risks.map(|(path, risk)| told(path, risk));
    Ok(risks.chain(is_cut.then(|| UNREAD.to_owned())).collect())
}

/// What is not looked at may be anything.
pub(crate) const UNREAD: &str = "there is more in them than is looked at";

/// One risk, as it is told in an error.
pub(crate) fn told(path: &[u8], risk: &Risk) -> String {
    format!("{}: {} ({})", crate::inert::inert_name(path), risk.reason, risk.code.name())
}

fn judge(blobs: &mut Blobs<'_>, change: &Change, known: Known<'_>) -> Result<Vec<Risk>, ReviewError> {
    if !risk::wants_texts(change) {
        return Ok(risk::of(change, known));
    }
    // What is too large to be read is judged as one that says anything.
    let old = blobs.read(&change.old_object, risk::LARGE)?;
    let new = blobs.read(&change.object, risk::LARGE)?;
    let texts = old.as_deref().zip(new.as_deref());
    Ok(risk::of(change, Known { texts, ..known }))
}

/// Commits with what each changed.
type Changed = Vec<(Commit, Vec<Reviewed>)>;

/// The commits, and whether there is more in them than is read.
fn reviewed_commits(store: &Store, git: &Git) -> Result<(Changed, bool), ReviewError> {
    let Some(tip) = commits::accepted(store) else { return Ok((Vec::new(), false)) };
    let commits = commits::list(store, git, &tip)?;
    let (mut differences, is_cut) = commits::differences(git, &commits)?;
    let (mut found, mut blobs) = (Vec::new(), Blobs::of(git));
    for commit in commits {
        let difference = differences.iter_mut().find(|(id, _)| *id == commit.id);
        let changes = difference.map(|(_, difference)| std::mem::take(&mut difference.changes));
        let mut files = Vec::new();
        for change in changes.unwrap_or_default() {
            let risks = judge(&mut blobs, &change, Known::default())?;
            files.push(Reviewed { change, risks, conflict: false });
        }
        found.push((commit, files));
    }
    Ok((found, is_cut))
}
