//! Whether anything waits in a workspace for its owner: quickly, by the layer alone, or exactly.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;

use crate::base::{Base, is_beneath, read_paths};
use crate::commits;
use crate::error::ReviewError;
use crate::journal;
use crate::layer::{Directory, Kind};
use crate::limits::Limits;
use crate::record::{Files, Mode};
use crate::snapshot::Snapshot;
use crate::store::{Store, read_recorded, write_whole};
use crate::walk::joined;

/// What was found last, and after which start.
const NOTE: &str = "waits";
const SOMETHING: &str = "something";
const NOTHING: &str = "nothing";

/// Whether anything was written inside, by the layer alone: what git ignores counts, too. It ends at the first change, and
/// does not wait for the base.
pub fn has_changes(files: &Files) -> Result<bool, ReviewError> {
    let upper = files.upper();
    let failed = |errno: Errno| ReviewError::file(&upper)(errno.into());
    let top = match Directory::top(&upper) {
        Err(Errno::NOENT) => return Ok(false),
        top => top.map_err(failed)?,
    };
    let recorded = read_recorded(files)?;
    if recorded.mode == Mode::Direct {
        return Ok(commits_wait(files));
    }
    if commits::tip_inside(files, &recorded).is_some() {
        return Ok(true);
    }
    let hidden = read_paths(&files.hidden())?;
    let (limits, mut waiting, mut seen) = (Limits::default(), vec![(top, Vec::new())], 0);
    while let Some((directory, path)) = waiting.pop() {
        if !path.is_empty() && directory.notes().is_opaque {
            return Ok(true);
        }
        let entries = directory.entries(limits.entries).map_err(failed)?;
        // One with so many entries is no empty one.
        let Some(entries) = entries else { return Ok(true) };
        seen += entries.len() as u64;
        if seen > limits.entries || waiting.len() > limits.depth {
            return Ok(true);
        }
        for entry in entries.into_iter().filter(|entry| entry.name != b".git") {
            let path = joined(&path, &entry.name);
            match entry.kind {
                Kind::Whiteout if is_beneath(&hidden, &path) => {}
                Kind::Directory => match directory.directory(&entry.name) {
                    Ok(inner) => waiting.push((inner, path)),
                    Err(_) => return Ok(true),
                },
                Kind::Whiteout | Kind::File | Kind::Link | Kind::Special => return Ok(true),
            }
        }
    }
    Ok(false)
}

/// Whether there is anything that the owner has not taken: exactly, as `diff` would show it.
pub fn is_waiting(files: &Files) -> Result<bool, ReviewError> {
    if !has_changes(files)? {
        return Ok(false);
    }
    let store = Store::open(files)?;
    if store.recorded.mode == Mode::Direct {
        return Ok(true);
    }
    look(&store)
}

/// The same of one that does not run, without waiting for anybody: none where somebody else is at it. What was found is
/// noted, and holds until there is another start.
pub fn waits(files: &Files) -> Result<Option<bool>, ReviewError> {
    let path = files.review().join(NOTE);
    let stamp = stamp(files)?;
    let noted = fs::read_to_string(&path).unwrap_or_default();
    if let Some((_, word)) = noted.trim().rsplit_once(' ').filter(|(known, _)| *known == stamp) {
        return Ok(Some(word != NOTHING));
    }
    let Some(store) = Store::try_open(files)? else { return Ok(None) };
    let waits = has_changes(files)? && look(&store)?;
    let word = if waits { SOMETHING } else { NOTHING };
    write_whole(&path, format!("{stamp} {word}\n").as_bytes()).map_err(ReviewError::file(&path))?;
    Ok(Some(waits))
}

/// Forgets what was noted: something was taken.
pub(crate) fn forget(store: &Store) -> Result<(), ReviewError> {
    let path = store.own(NOTE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ReviewError::file(&path)(error)),
        _ => Ok(()),
    }
}

/// Which start it was: whenever the layer is mounted, the kernel makes its work directory anew.
fn stamp(files: &Files) -> Result<String, ReviewError> {
    let work = files.work();
    let metadata = fs::metadata(&work).map_err(ReviewError::file(&work))?;
    Ok(format!("{}.{}", metadata.ctime(), metadata.ctime_nsec()))
}

/// Commits that made nothing else of the files wait, too: those that git would ignore are only known by them.
fn look(store: &Store) -> Result<bool, ReviewError> {
    journal::recover(store)?;
    let base = Base::of(store)?;
    let snapshot = Snapshot::take(store, &base, &commits::also_known(store, &base)?)?;
    let applied = fs::read_to_string(store.own("applied")).unwrap_or_default();
    let is_changed =
        snapshot.tree != base.tree || commits::tip_inside(&store.files, &store.recorded).is_some();
    Ok(is_changed && snapshot.tree != applied.trim())
}

/// Whether commits from inside wait that are not a branch yet. All else is never waited for where the tree itself was
/// worked on.
fn commits_wait(files: &Files) -> bool {
    let Ok(recorded) = read_recorded(files) else { return false };
    let applied = fs::read_to_string(files.review().join("applied")).unwrap_or_default();
    commits::tip_inside(files, &recorded).is_some_and(|tip| tip != applied.trim())
}
