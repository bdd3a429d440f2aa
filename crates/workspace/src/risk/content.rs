//! What a file is by its lines: links that leave, characters that mislead, programs that a package names.

use serde_json::Value;

use super::Code;
use crate::change::Change;
use crate::inert::{is_bidi, is_unseen};

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

/// Tells what is in the new lines.
pub(super) fn of(change: &Change) -> Vec<(Code, &'static str)> {
    let mut found = Vec::new();
    if change.mode == "120000" {
        let target = change.added_lines().next().unwrap_or_default();
        if leaves(&change.path, target) {
            found.push((Code::Link, "it leads out of the tree"));
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

/// Whether a link leads to somewhere that is not in the tree.
fn leaves(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path.iter().filter(|byte| **byte == b'/').count();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            // Into the owner's repository, too, although it is in the tree.
            part if depth == 0 && part.eq_ignore_ascii_case(b".git") => return true,
            _ => depth += 1,
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
