//! What fuzzing sees of the way back: one function for each kind of bytes that somebody inside has a hand in. Each reads them
//! as a review does and ends the process where something that must always hold does not.
//!
//! It is there only with the feature `fuzz`, which nothing that ships has.

#![expect(clippy::unwrap_used, reason = "what fails here has been found")]

use crate::change::{self, Change, Status};
use crate::commits;
use crate::inert::{exact_name, inert, inert_name, is_unseen};
use crate::listing::Listing;
use crate::names::is_refused;
use crate::nested;
use crate::patch;
use crate::quote::{name, quoted};
use crate::refs;
use crate::risk;
use crate::settings::Settings;

/// What git prints of a difference. What is read of it, printed as git would, is read as the same; pieces fit onto what they
/// were made from.
pub fn difference(bytes: &[u8]) {
    let Some((difference, rest)) = change::parse(bytes) else { return };
    assert!(bytes.ends_with(rest));
    if difference.is_cut {
        return;
    }
    let printed = printed(&difference.changes);
    let (again, rest) = change::parse(&printed).unwrap();
    assert!(rest.is_empty(), "{:?}", rest.escape_ascii().to_string());
    assert_eq!(format!("{:?}", again.changes), format!("{:?}", difference.changes));
    for change in &difference.changes {
        for hunk in &change.hunks {
            let side = |kind: u8| -> Vec<u8> {
                let lines = hunk
                    .lines
                    .iter()
                    .filter(|line| matches!(line.first(), Some(first) if *first == kind || *first == b' '));
                lines.flat_map(|line| [&line[1..], b"\n"].concat()).collect()
            };
            let alone = crate::change::Hunk { old: (u64::from(hunk.old.1 > 0), hunk.old.1), ..hunk.clone() };
            let is_plain = hunk.lines.iter().all(|line| matches!(line.first(), Some(b'+' | b'-' | b' ')));
            if is_plain {
                assert_eq!(patch::put_on(&side(b'-'), &[&alone]).unwrap(), side(b'+'));
            }
        }
    }
}

/// Changes as git prints them.
fn printed(changes: &[Change]) -> Vec<u8> {
    let mut text = Vec::new();
    for change in changes {
        let letter = match change.status {
            Status::Added => 'A',
            Status::Deleted => 'D',
            Status::Modified => 'M',
            Status::Renamed => 'R',
            Status::Retyped => 'T',
        };
        let Change { old_mode, mode, old_object, object, .. } = change;
        text.extend_from_slice(format!(":{old_mode} {mode} {old_object} {object} {letter}\t").as_bytes());
        let names = change.old_path.iter().chain([&change.path]).map(|path| quoted(path));
        text.extend_from_slice(&names.collect::<Vec<_>>().join(&b'\t'));
        text.push(b'\n');
    }
    for change in changes {
        let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        text.extend_from_slice(
            format!("{}\t{}\tx\n", number(change.added), number(change.removed)).as_bytes(),
        );
    }
    text.push(b'\n');
    for change in changes {
        if change.status == Status::Retyped {
            text.extend_from_slice(b"diff --git a/x b/x\n");
        }
        text.extend_from_slice(b"diff --git a/x b/x\n");
        for hunk in &change.hunks {
            let ((old, olds), (new, news)) = (hunk.old, hunk.new);
            text.extend_from_slice(format!("@@ -{old},{olds} +{new},{news} @@\n").as_bytes());
            for line in &hunk.lines {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
    }
    text
}

/// A name as git writes it. What is read is written as the same, and any name comes back as it was.
pub fn quote(bytes: &[u8]) {
    for end in [b'\t', b' '] {
        if let Some((read, _)) = name(bytes, end) {
            assert_eq!(name(&quoted(&read), end).unwrap(), (read, &b""[..]));
        }
    }
    let written = quoted(bytes);
    assert!(!written.contains(&b'\n') && !written.contains(&0));
    assert_eq!(name(&written, b'\t').unwrap(), (bytes.to_vec(), &b""[..]));
}

/// Anything for a terminal: nothing in it acts or hides. A name for programs can be told from every other.
pub fn shown(bytes: &[u8]) {
    for (text, may_have_tabs) in [(inert(bytes), true), (inert_name(bytes), false)] {
        let acts = |c: char| (c.is_control() && !(may_have_tabs && c == '\t')) || is_unseen(c);
        assert!(!text.contains(acts), "{text:?}");
    }
    assert_eq!(unescaped(&exact_name(bytes)), bytes);
}

/// What [`exact_name`] was given.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        (bytes, rest) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => ([bytes, vec![b'\\']].concat(), after),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let byte = u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap();
                ([bytes, vec![byte]].concat(), after)
            }
            (first, after) => ([bytes, vec![*first]].concat(), after),
        };
    }
    bytes
}

/// Where a repository stands: HEAD, a list of refs and a path that leads to it, with a NUL between. What is believed is a
/// commit, and leads nowhere.
pub fn standing(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let [head, packed, path] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let stays =
        |path: &[u8]| path.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
    for length in [40, 64] {
        let is_commit = |commit: &str| {
            commit.len() == length && commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match nested::read_head(head, length) {
            Some(nested::Head::Commit(commit)) => assert!(is_commit(&commit), "{commit:?}"),
            Some(nested::Head::Ref(name)) => {
                assert!(name.starts_with(b"refs/") && stays(&name), "{:?}", name.escape_ascii().to_string());
                if let Some(commit) = nested::in_list(packed, &name, length) {
                    assert!(is_commit(&commit), "{commit:?}");
                }
            }
            None => {}
        }
    }
    if let Some(led) = nested::plain(b"a/b", path) {
        assert!(stays(&led), "{:?}", led.escape_ascii().to_string());
    }
    for (name, target) in refs::packed(packed) {
        assert!(name.starts_with(b"refs/") && stays(&name), "{:?}", name.escape_ascii().to_string());
        assert!(matches!(target, refs::Target::Object(object) if matches!(object.len(), 40 | 64)));
    }
    if let Some(refs::Target::Ref(name)) = refs::target(head) {
        assert!(name.starts_with(b"refs/") && stays(&name), "{:?}", name.escape_ascii().to_string());
    }
}

/// All paths of a tree. What is found by searching is what is there.
pub fn listing(bytes: &[u8]) {
    let Ok(listing) = Listing::parse(bytes) else { return };
    for entry in listing.entries() {
        assert_eq!(listing.get(&entry.path).unwrap().path, entry.path);
        let end = entry.path.iter().position(|byte| *byte == b'/').unwrap_or(0);
        let directory = &entry.path[..end];
        let prefix = if directory.is_empty() { Vec::new() } else { [directory, b"/"].concat() };
        let below = listing.entries().iter().filter(|other| other.path.starts_with(&prefix)).count();
        assert_eq!(listing.below(directory).len(), below);
    }
}

/// The configuration of a repository. What goes inside is what is listed, whatever is in names and values.
pub fn settings(bytes: &[u8]) {
    const VARIABLES: [&str; 24] = [
        "repositoryformatversion",
        "bare",
        "logallrefupdates",
        "checkstat",
        "trustctime",
        "filemode",
        "symlinks",
        "ignorecase",
        "precomposeunicode",
        "autocrlf",
        "eol",
        "safecrlf",
        "sparsecheckout",
        "sparsecheckoutcone",
        "sparse",
        "name",
        "email",
        "defaultbranch",
        "objectformat",
        "partialclone",
        "url",
        "fetch",
        "promisor",
        "partialclonefilter",
    ];
    const SECTIONS: [&str; 8] =
        ["core", "index", "user", "init", "extensions", "remote", "submodule", "branch"];
    for line in Settings::parse(bytes).inside().lines() {
        if let Some(rest) = line.strip_prefix('[') {
            let section = rest.split([' ', ']']).next().unwrap();
            assert!(SECTIONS.contains(&section) && line.ends_with(']'), "{line:?}");
            continue;
        }
        let (variable, value) = line.strip_prefix('\t').and_then(|line| line.split_once(" = ")).unwrap();
        let is_listed = VARIABLES.contains(&variable) || matches!(variable, "remote" | "merge" | "active");
        assert!(is_listed, "{line:?}");
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
        assert!(!inner.replace("\\\\", "").replace("\\\"", "").contains('"'), "{line:?}");
        if variable == "url"
            && let Some((_, rest)) = inner.split_once("://")
        {
            let authority = rest.split('/').next().unwrap();
            assert!(!authority.trim_start_matches("git@").contains('@'), "{line:?}");
        }
    }
}

/// A name, and where a link of that name leads, with a NUL between. What one file system does not see in a name, and the case
/// of it, change nothing; a link that is taken to stay does.
pub fn names(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let [name, target] = [(); 2].map(|()| parts.next().unwrap_or_default());
    for is_link in [false, true] {
        let is_so = is_refused(name, is_link);
        assert_eq!(is_refused(&name.to_ascii_uppercase(), is_link), is_so);
        let unseen = ["\u{200c}".as_bytes(), name, "\u{feff}".as_bytes()].concat();
        assert!(!is_so || is_refused(&unseen, is_link) || name.contains(&b'\\'));
    }
    if !risk::leaves(b"a/b/link", target) {
        let mut depth = 2_i32;
        for part in target.split(|byte| *byte == b'/') {
            depth += match part {
                b"" | b"." => 0,
                b".." => -1,
                _ => 1,
            };
            assert!(depth >= 0);
            assert!(!part.eq_ignore_ascii_case(b".git"));
        }
        assert!(!target.starts_with(b"/"));
    }
}

/// A list of commits. Nothing of it is more than three fields, and each is one that was there.
pub fn commits(bytes: &[u8]) {
    for commit in commits::read_list(bytes) {
        for field in [commit.id.as_bytes(), &commit.author, &commit.subject] {
            assert!(!field.contains(&0));
        }
        assert!(!inert_name(&commit.author).contains(char::is_control));
    }
}
