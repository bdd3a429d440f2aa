//! Differences from what is not there: a clone may lack the content of files that nobody has looked at yet, and nothing of it
//! is ever fetched here. Such a file is shown as if it had been empty, and flagged as not read.

use std::collections::BTreeMap;

use super::{Change, Difference, Renames, names};
use crate::error::ReviewError;
use crate::git::Git;
use crate::import::Import;

/// The difference with everything that is missing before taken for empty; none where nothing is missing.
pub(super) fn between(
    git: &Git,
    old: &str,
    new: &str,
    renames: Renames,
) -> Result<Option<Difference>, ReviewError> {
    let changes = names(git, old, new)?;
    let missing = missing(git, &changes)?;
    if missing.is_empty() {
        return Ok(None);
    }
    let mut import = Import::begin(&git.clone().unsynced(), Some(old))?;
    for (path, (mode, _)) in &missing {
        import.write(path, mode, b"");
    }
    let mut difference = super::compare(git, &import.finish()?, new, renames)?;
    for change in &mut difference.changes {
        let before = change.old_path.as_ref().unwrap_or(&change.path);
        if let Some((_, object)) = missing.get(before) {
            change.old_object.clone_from(object);
            change.is_unread = true;
        }
    }
    Ok(Some(difference))
}

/// What each path was, of which the content is not there.
fn missing(git: &Git, changes: &[Change]) -> Result<BTreeMap<Vec<u8>, (String, String)>, ReviewError> {
    let asked: Vec<&Change> =
        changes.iter().filter(|change| !matches!(change.old_mode.as_str(), "000000" | "160000")).collect();
    let input: String = asked.iter().map(|change| format!("{}\n", change.old_object)).collect();
    let printed = git.run_with(["cat-file", "--batch-check"], input.into_bytes())?;
    let lines = printed.split(|byte| *byte == b'\n');
    let gone = asked.into_iter().zip(lines).filter(|(_, line)| line.ends_with(b" missing"));
    Ok(gone
        .map(|(change, _)| (change.path.clone(), (change.old_mode.clone(), change.old_object.clone())))
        .collect())
}
