//! What `diff` shows.

use std::collections::BTreeMap;

use workspace::{Code, Status, Why};

use crate::place::Place;

fn shown(place: &Place) -> BTreeMap<String, (Status, bool)> {
    let review = workspace::review(&place.files(), &[]).unwrap();
    let named = |file: &workspace::Reviewed| {
        (workspace::exact_name(&file.change.path), (file.change.status, file.conflict))
    };
    review.files.iter().map(named).collect()
}

fn statuses(place: &Place) -> Vec<(String, Status)> {
    shown(place).into_iter().map(|(path, (status, _))| (path, status)).collect()
}

fn named(list: &[(&str, Status)]) -> Vec<(String, Status)> {
    list.iter().map(|(path, status)| ((*path).to_owned(), *status)).collect()
}

#[test]
fn nothing_is_shown_of_nothing() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    assert!(!workspace::has_changes(&place.files()).unwrap());
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert!(review.is_empty() && review.files.is_empty());
    assert_eq!(review.tree, place.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn every_kind_of_change_is_shown() {
    let lines: String = (0..30).map(|number| format!("line {number}\n")).collect();
    let place = Place::repository(&[
        ("changed", "1\n"),
        ("gone", "2\n"),
        ("old-name", &lines),
        ("script", "#!/bin/sh\n"),
        ("dir/a", "a\n"),
        ("dir/b", "b\n"),
        ("file-to-dir", "x\n"),
        ("link", "text\n"),
        ("same", "same\n"),
    ]);
    place.begin();
    place.write("changed", "one\n");
    place.remove("gone");
    place.remove("old-name");
    place.write("new-name", &lines);
    place.write("script", "#!/bin/sh\n");
    place.chmod("script", 0o755);
    place.remove("dir");
    place.write("dir", "now a file\n");
    place.remove("file-to-dir");
    place.write("file-to-dir/inner", "y\n");
    place.remove("link");
    place.link("link", "changed");
    place.write("binary", [0, 1, 2, 255]);
    place.write("same", "same\n");
    assert!(workspace::has_changes(&place.files()).unwrap());
    let expected = named(&[
        ("binary", Status::Added),
        ("changed", Status::Modified),
        ("dir", Status::Added),
        ("dir/a", Status::Deleted),
        ("dir/b", Status::Deleted),
        ("file-to-dir", Status::Deleted),
        ("file-to-dir/inner", Status::Added),
        ("gone", Status::Deleted),
        ("link", Status::Retyped),
        ("new-name", Status::Renamed),
        ("script", Status::Modified),
    ]);
    assert_eq!(statuses(&place), expected);
    let review = workspace::review(&place.files(), &[]).unwrap();
    let file = |name: &str| review.files.iter().find(|file| file.change.path == name.as_bytes()).unwrap();
    assert_eq!(file("new-name").change.old_path.as_deref(), Some(b"old-name".as_slice()));
    assert!(file("binary").change.is_binary());
    assert_eq!(file("script").risks[0].code, Code::Executable);
    assert_eq!((file("changed").change.added, file("changed").change.removed), (Some(1), Some(1)));
}

#[test]
fn what_git_ignores_is_not_shown_and_not_read() {
    let place = Place::repository(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("sub/.gitignore", "local\n"),
        ("sub/f", ""),
    ]);
    place.begin();
    place.write("target/debug/big", "x");
    place.write("a.log", "x");
    place.write("keep.log", "x");
    place.write("sub/local", "x");
    place.write("sub/new", "x");
    place.write("fresh/.gitignore", "*\n");
    place.write("fresh/file", "x");
    place.write("other/local", "x");
    assert_eq!(
        statuses(&place),
        named(&[("keep.log", Status::Added), ("other/local", Status::Added), ("sub/new", Status::Added)])
    );
    // A rule that is new or gone counts as it is inside.
    place.write("sub/.gitignore", "new\n");
    place.remove(".gitignore");
    let now = statuses(&place).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(
        now,
        [".gitignore", "a.log", "keep.log", "other/local", "sub/.gitignore", "sub/local", "target/debug/big"]
    );
}

#[test]
fn hidden_files_are_never_a_change_unless_made() {
    let place = Place::repository(&[("a", "")]);
    place.own(".env", "SECRET=1\n");
    place.own("keys/id_rsa", "secret\n");
    place.hide(&[".env", "keys/id_rsa"]);
    place.begin();
    place.remove(".env");
    place.remove("keys/id_rsa");
    assert!(!workspace::has_changes(&place.files()).unwrap());
    assert_eq!(statuses(&place), []);
    place.write(".env", "MINE=1\n");
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.files.len(), 1);
    assert!(review.files[0].risks.iter().any(|risk| risk.code == Code::Hidden));
    assert!(review.files[0].conflict);
    let stored = place.git_in(&place.files().git(), &["cat-file", "--batch-check", "--batch-all-objects"]);
    let secret = place.git(&["hash-object", ".env"]);
    assert!(!stored.contains(&secret), "what is hidden was read");
}

#[test]
fn a_dirty_tree_is_the_base_as_it_was() {
    let place = Place::repository(&[("a", "1\n"), ("b", "2\n"), ("c", "3\n")]);
    place.own("a", "owner's\n");
    place.own("untracked", "owner's\n");
    place.own("staged", "owner's\n");
    place.git(&["add", "staged"]);
    std::fs::remove_file(place.owner().join("c")).unwrap();
    let index = std::fs::read(place.owner().join(".git/index")).unwrap();
    place.begin();
    assert_eq!(std::fs::read(place.owner().join(".git/index")).unwrap(), index);
    assert_eq!(statuses(&place), []);
    place.write("untracked", "agent's\n");
    // The owner goes on: that is no change of the agent's, and a conflict where both did.
    place.own("b", "later\n");
    place.own("untracked", "later\n");
    assert_eq!(shown(&place), BTreeMap::from([("untracked".to_owned(), (Status::Modified, true))]));
}

#[test]
fn odd_names_are_told_apart() {
    let place = Place::repository(&[("ä", "1\n"), ("A", "1\n"), ("a", "1\n")]);
    place.begin();
    for name in [
        &b"new\nline"[..],
        b"tab\t",
        b"quote\"",
        b"\xff\xfe",
        b"-dash",
        b":(top)x",
        b"back\\slash",
        "日本".as_bytes(),
    ] {
        place.write(name, "x\n");
    }
    place.write("A", "2\n");
    place.write("ä", "2\n");
    let names: Vec<String> = shown(&place).into_keys().collect();
    let mut expected = vec![
        "-dash",
        ":(top)x",
        "A",
        "back\\\\slash",
        "new\nline",
        "quote\"",
        "tab\t",
        "ä",
        "日本",
        "\\xff\\xfe",
    ];
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn what_cannot_come_back_is_named() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let place = Place::repository(&[("a", "1\n")]);
    place.own("inner/.git/HEAD", "ref: refs/heads/main\n");
    place.git_in(&place.owner(), &["init", "-q", "theirs"]);
    place.own("theirs/file", "x");
    place.begin();
    mknodat(CWD, place.upper().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    place.write("git~1", "x");
    place.write(".GIT", "x");
    place.write("theirs/file", "y");
    place.write(".git/config", "[core]\n\tfsmonitor = touch /tmp/never\n");
    place.write("made/.git/config", "[core]\n");
    place.write("made/file", "x");
    let review = workspace::review(&place.files(), &[]).unwrap();
    let left: Vec<(&[u8], Why)> =
        review.remarks.iter().map(|remark| (remark.path.as_slice(), remark.why)).collect();
    assert!(left.contains(&(b"pipe", Why::Special)), "{left:?}");
    assert!(left.contains(&(b"git~1", Why::Name)) && left.contains(&(b".GIT", Why::Name)), "{left:?}");
    assert!(left.contains(&(b"theirs", Why::Repository)), "{left:?}");
    assert_eq!(statuses(&place), named(&[("made/file", Status::Added)]));
}

#[test]
fn a_directory_without_a_repository_has_a_base_too() {
    let place = Place::plain();
    place.own("a", "1\n");
    place.own("dir/b", "2\n");
    place.own(".gitignore", "ignored\n");
    place.begin();
    place.write("a", "2\n");
    place.remove("dir");
    place.write("new", "x\n");
    place.write("ignored", "x\n");
    assert_eq!(
        statuses(&place),
        named(&[("a", Status::Modified), ("dir/b", Status::Deleted), ("new", Status::Added)])
    );
}

#[test]
fn line_ends_are_what_git_would_make_of_them() {
    let place = Place::repository(&[(".gitattributes", "*.txt text\n*.bin -text\n")]);
    place.git(&["config", "core.autocrlf", "true"]);
    place.own("crlf.txt", "a\r\nb\r\n");
    place.own("raw.bin", "a\r\nb\r\n");
    place.own("auto", "a\r\nb\r\n");
    place.commit("second");
    place.begin();
    place.write("crlf.txt", "a\r\nB\r\n");
    place.write("auto", "a\r\nb\r\n");
    place.write("new.txt", "x\r\n");
    place.write("raw.bin", "a\r\nB\r\n");
    let review = workspace::review(&place.files(), &[]).unwrap();
    for name in ["crlf.txt", "auto", "new.txt", "raw.bin"] {
        std::fs::copy(place.upper().join(name), place.owner().join(name)).unwrap();
    }
    assert_eq!(review.tree, place.tree_of(&place.owner()));
    assert_eq!(review.files.len(), 3);
}

#[test]
fn paths_narrow_what_is_shown() {
    let place = Place::repository(&[("a/x", "1\n"), ("b", "1\n")]);
    place.begin();
    place.write("a/x", "2\n");
    place.write("b", "2\n");
    let review = workspace::review(&place.files(), &[b"a".to_vec()]).unwrap();
    assert_eq!(review.files.len(), 1);
    let error = workspace::review(&place.files(), &[b"nowhere".to_vec()]).unwrap_err();
    assert!(matches!(error, workspace::ReviewError::NoSuchPath(_)), "{error}");
}
