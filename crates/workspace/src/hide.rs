//! What of the owner's tree is absent inside: files that usually hold secrets and that git does not track, sockets,
//! pipes and devices, and directories that nobody can look into.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::git::{Git, GitError};
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::survey::Found;
use crate::upper::{Upper, path_of};

/// What one question to git may name, in bytes: the kernel takes some more.
const LONGEST_QUESTION: usize = 64 << 10;

/// A repository inside, for the question of what it tracks.
pub(crate) struct Tracker {
    /// Where it begins, relative to the tree.
    pub(crate) below: PathBuf,
    /// Somewhere to ask: a repository of ours with a copy of the owner's index, which nobody inside can have written.
    pub(crate) git: Git,
}

/// git in the `.git` of a layer that nobody is inside of yet.
pub(crate) fn git_of(upper: &Upper<'_>, below: &Path, objects: &[PathBuf]) -> Result<Git, GitError> {
    let work_tree = upper.place(below);
    let directory = work_tree.join(".git");
    let git = Git::new(&directory)?.on(&work_tree).with_index(&directory.join("index"));
    Ok(git.with_objects(objects))
}

/// Hides all of it: the paths.
pub(crate) fn hide(
    upper: &mut Upper<'_>,
    owner: &Owner,
    found: &Found,
    trackers: &[Tracker],
) -> Result<Vec<PathBuf>, Refusal> {
    let mut all = list(found, trackers)?;
    all.extend(unkept(found, &all));
    for path in &all {
        // What has gone meanwhile is hidden well enough.
        if fs::symlink_metadata(owner.path().join(path)).is_ok() {
            upper.hide(path)?;
        }
    }
    Ok(all)
}

/// The `.git` of each repository in a directory that usually holds secrets and is shown, as something in it is tracked: it
/// gets none of ours, and so it has none.
fn unkept(found: &Found, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let hidden: BTreeSet<PathBuf> = hidden.iter().cloned().collect();
    let is_secret =
        |path: &Path| found.secret_directories.iter().any(|secret| path.starts_with(path_of(secret)));
    let repositories = found.repositories.iter().map(|path| path_of(path)).filter(|path| is_secret(path));
    repositories.map(|path| path.join(".git")).filter(|path| !is_below(path, &hidden)).collect()
}

/// What is to be hidden; nothing of it lies below something else of it.
pub(crate) fn list(found: &Found, trackers: &[Tracker]) -> Result<Vec<PathBuf>, Refusal> {
    let tracked = tracked(found, trackers)?;
    let mut hidden = BTreeSet::new();
    for directory in found.secret_directories.iter().map(|path| path_of(path)) {
        let holds_tracked =
            tracked.range(directory.to_owned()..).next().is_some_and(|path| path.starts_with(directory));
        if !holds_tracked {
            hidden.insert(directory.to_owned());
        }
    }
    let files = found.secrets.iter().map(|path| path_of(path)).filter(|path| !tracked.contains(*path));
    let others = found.special.iter().chain(&found.closed).map(|path| path_of(path));
    hidden.extend(files.chain(others).map(Path::to_owned));
    Ok(hidden.iter().filter(|path| !is_below(path, &hidden)).cloned().collect())
}

fn is_below(path: &Path, hidden: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().skip(1).any(|above| hidden.contains(above))
}

/// Which of what may hold a secret is tracked, by the innermost repository that it lies in.
fn tracked(found: &Found, trackers: &[Tracker]) -> Result<BTreeSet<PathBuf>, Refusal> {
    let mut tracked = BTreeSet::new();
    let candidates: Vec<&Path> =
        found.secrets.iter().chain(&found.secret_directories).map(|path| path_of(path)).collect();
    let innermost = |path: &Path| {
        let around = trackers.iter().enumerate().filter(|(_, tracker)| path.starts_with(&tracker.below));
        around.max_by_key(|(_, tracker)| tracker.below.as_os_str().len()).map(|(number, _)| number)
    };
    for (number, tracker) in trackers.iter().enumerate() {
        let asked = candidates.iter().filter(|path| innermost(path) == Some(number));
        let asked: Vec<&Path> = asked.filter_map(|path| path.strip_prefix(&tracker.below).ok()).collect();
        let mut rest = asked.as_slice();
        while !rest.is_empty() {
            let mut size = 0;
            let fitting = rest.iter().take_while(|path| {
                size += path.as_os_str().len() + 1;
                size < LONGEST_QUESTION
            });
            let (now, later) = rest.split_at(fitting.count().max(1));
            let words = ["ls-files", "-z", "--cached", "--"].iter().map(Path::new);
            let listed = tracker.git.run(words.chain(now.iter().copied()))?;
            let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            tracked.extend(paths.map(|path| tracker.below.join(path_of(path))));
            rest = later;
        }
    }
    Ok(tracked)
}
