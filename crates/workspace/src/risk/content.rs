//! What a file is by its lines: links that leave, characters that mislead, programs that a package names.

use serde_json::Value;

use super::{Code, LINK};
use crate::change::Change;
use crate::inert::{is_bidi, is_unseen};
use crate::names::is_repository;

/// Lines that are longer are not written by hand.
const LONG_LINE: usize = 2000;

/// Parts of a package.json by which something runs or is fetched.
const PACKAGE_PARTS: [&str; 14] = [
    "scripts",
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
    "bundledDependencies",
    "overrides",
    "resolutions",
    "workspaces",
    "bin",
    "gypfile",
    "packageManager",
    "pnpm",
    "lint-staged",
];

/// Tells what is in the new lines; of a link, where it leads, as far as that is known.
pub(super) fn of(change: &Change, target: Option<&[u8]>) -> Vec<(Code, &'static str)> {
    let mut found = Vec::new();
    if change.mode == LINK {
        if target.is_none_or(|target| leaves(&change.path, target)) {
            found.push((Code::Link, "it leads out of the tree, or can"));
        }
        return found;
    }
    for line in change.added_lines() {
        let text = String::from_utf8_lossy(line);
        if text.chars().any(is_bidi) {
            found.push((Code::Bidi, "a new line has characters that reverse what follows"));
        }
        // One at the very beginning of a file is how some editors mark UTF-8.
        if text.chars().skip(1).any(|c| is_unseen(c) && !is_bidi(c)) || hides_at_begin(&text) {
            found.push((Code::Invisible, "a new line has characters that are not seen"));
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\r' | '\u{c}')) {
            found.push((Code::Invisible, "a new line has control characters"));
        }
        if line.len() > LONG_LINE {
            found.push((Code::Generated, "it has very long lines"));
        }
    }
    found
}

fn hides_at_begin(text: &str) -> bool {
    text.chars().next().is_some_and(|c| is_unseen(c) && !is_bidi(c) && c != '\u{feff}')
}

/// Whether a link leads to somewhere that is not in the tree. After a name there may be no way up: what it names may be a
/// link itself, and then up from there is anywhere.
pub(crate) fn leaves(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path.iter().filter(|byte| **byte == b'/').count();
    let mut is_down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 || is_down => return true,
            b".." => depth -= 1,
            // Into a repository, too, although it is in the tree.
            part if is_repository(part) => return true,
            _ => is_down = true,
        }
    }
    false
}

/// Whether other programs run, or other packages are fetched. What cannot be read is another.
pub(super) fn packages_differ(old: &[u8], new: &[u8]) -> bool {
    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
    let empty = || Some(Value::Null).filter(|_| old.is_empty());
    match (read(old).or_else(empty), read(new)) {
        (Some(old), Some(new)) => PACKAGE_PARTS.iter().any(|part| old.get(part) != new.get(part)),
        _ => true,
    }
}
