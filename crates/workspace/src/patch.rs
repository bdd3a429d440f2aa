//! The lines of a difference: read as git prints them, and put onto a file again, all or some.

use crate::change::Hunk;

/// The next line without its end, and what follows.
pub(crate) fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    (line, rest.get(1..).unwrap_or_default())
}

/// Reads one file's part; names in it are quoted, so that no line of content can pass for its first one.
pub(crate) fn section(text: &[u8]) -> Option<(Vec<Hunk>, &[u8])> {
    if !text.starts_with(b"diff --git ") {
        return None;
    }
    let (_, mut rest) = line(text);
    let mut hunks = Vec::new();
    while !rest.is_empty() && !rest.starts_with(b"diff --git ") {
        let (head, after) = line(rest);
        // The id of the next commit.
        if head.len() >= 40 && head.iter().all(u8::is_ascii_hexdigit) {
            break;
        }
        rest = after;
        if let Some(mut hunk) = head.strip_prefix(b"@@ ").and_then(ranges) {
            rest = lines(&mut hunk, rest);
            hunks.push(hunk);
        }
    }
    Some((hunks, rest))
}

/// As many lines as the head of a piece says.
fn lines<'a>(hunk: &mut Hunk, mut rest: &'a [u8]) -> &'a [u8] {
    let (mut old, mut new) = (hunk.old.1, hunk.new.1);
    while (old > 0 || new > 0 || rest.starts_with(b"\\")) && !rest.is_empty() {
        let (text, after) = line(rest);
        match text.first() {
            Some(b'+') => new = new.saturating_sub(1),
            Some(b'-') => old = old.saturating_sub(1),
            Some(b'\\') => {}
            _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
        }
        hunk.lines.push(text.to_vec());
        rest = after;
    }
    rest
}

/// `-1,2 +3 @@ …`.
fn ranges(head: &[u8]) -> Option<Hunk> {
    let text = String::from_utf8_lossy(head);
    let mut words = text.split(' ');
    let old = range(words.next()?.strip_prefix('-')?)?;
    let new = range(words.next()?.strip_prefix('+')?)?;
    Some(Hunk { old, new, lines: Vec::new() })
}

fn range(text: &str) -> Option<(u64, u64)> {
    match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// Puts some pieces of a difference onto what was before; none where they do not fit.
pub(crate) fn put_on(before: &[u8], hunks: &[&Hunk]) -> Option<Vec<u8>> {
    let mut lines = before.split_inclusive(|byte| *byte == b'\n');
    let mut at = 0;
    let mut after = Vec::with_capacity(before.len());
    for hunk in hunks {
        // A piece that takes nothing away stands after the line that it names.
        let begin = if hunk.old.1 == 0 { hunk.old.0 } else { hunk.old.0.checked_sub(1)? };
        while at < begin {
            after.extend_from_slice(lines.next()?);
            at += 1;
        }
        let mut last_is_new = false;
        for line in &hunk.lines {
            let (kind, text) = line.split_first()?;
            match kind {
                b'+' => {
                    after.extend_from_slice(text);
                    after.push(b'\n');
                    last_is_new = true;
                }
                b'-' | b' ' => {
                    let was = lines.next()?;
                    at += 1;
                    if was.strip_suffix(b"\n").unwrap_or(was) != text {
                        return None;
                    }
                    last_is_new = false;
                    if *kind == b' ' {
                        after.extend_from_slice(was);
                    }
                }
                // Of the line before; one that stays is taken as it is.
                _ if last_is_new => drop(after.pop()),
                _ => {}
            }
        }
    }
    lines.for_each(|line| after.extend_from_slice(line));
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &[u8] = b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn\n a\n-b\n+B\n c\n@@ -9 +9,2 @@\n-diff --git\n\\ No newline at end of file\n+i\n+j\n\\ No newline at end of file\ndiff --git a/y b/y\nBinary files differ\n";

    #[test]
    fn pieces_are_read_and_put_on() {
        let (hunks, rest) = section(PATCH).unwrap();
        assert_eq!(hunks.len(), 2);
        assert_eq!((hunks[1].old, hunks[1].new), ((9, 1), (9, 2)));
        let (none, rest) = section(rest).unwrap();
        assert!(none.is_empty() && rest.is_empty());
        let before = b"a\nb\nc\nd\ne\nf\ng\nh\ndiff --git";
        let all: Vec<&Hunk> = hunks.iter().collect();
        assert_eq!(put_on(before, &all).unwrap(), b"a\nB\nc\nd\ne\nf\ng\nh\ni\nj");
        assert_eq!(put_on(before, &all[..1]).unwrap(), b"a\nB\nc\nd\ne\nf\ng\nh\ndiff --git");
        assert_eq!(put_on(b"other\n", &all), None);
    }
}
