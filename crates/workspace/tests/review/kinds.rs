//! What a file is as an object: by its content, its mode and what the owner has told git of both.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::place::Place;

/// The tree that is shown is the one that git makes of the same files in the owner's tree.
#[track_caller]
fn is_as_git_would(place: &Place, names: &[&str]) {
    let review = workspace::review(&place.files(), &[]).unwrap();
    for name in names {
        let (from, to) = (place.upper().join(name), place.owner().join(name));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&from, &to).unwrap();
        fs::set_permissions(&to, from.metadata().unwrap().permissions()).unwrap();
    }
    assert_eq!(review.tree, place.tree_of(&place.owner()));
}

#[test]
fn line_ends_go_by_the_attributes_that_hold_inside() {
    let place = Place::repository(&[
        (".gitattributes", "*.txt text\n"),
        ("sub/.gitattributes", "*.txt -text\n"),
        ("sub/a.txt", "1\n"),
        ("a.txt", "1\n"),
    ]);
    place.begin();
    let names = ["a.txt", "sub/a.txt", "b.dat", "new/c.dat", "new/.gitattributes"];
    for name in names {
        place.write(name, "one\r\ntwo\r\n");
    }
    place.write("new/.gitattributes", "*.dat text\n");
    is_as_git_would(&place, &names);

    // Attributes that are gone inside count no more.
    let place = Place::repository(&[(".gitattributes", "*.txt text\n"), ("a.txt", "1\n")]);
    place.begin();
    place.remove(".gitattributes");
    place.write("a.txt", "one\r\n");
    fs::remove_file(place.owner().join(".gitattributes")).unwrap();
    is_as_git_would(&place, &["a.txt"]);
}

#[test]
fn large_files_come_back_whole() {
    let place = Place::repository(&[("a", "1\n"), (".gitattributes", "*.txt text\n")]);
    place.begin();
    place.write("plain.txt", "a line\n".repeat(500_000));
    place.write("returns.txt", "a line\r\n".repeat(500_000));
    place.write("raw.bin", (0..3 << 20).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
    // What git does not compress against anything.
    place.write("huge", vec![b'x'; 9 << 20]);
    place.chmod("huge", 0o755);
    is_as_git_would(&place, &["plain.txt", "returns.txt", "raw.bin", "huge"]);
    assert!(!place.files().review().join("large").exists());
}

#[test]
fn mixed_line_ends_keep_nobody_from_seeing_changes() {
    let place = Place::repository(&[(".gitattributes", "* text=auto\n"), ("a", "1\n")]);
    place.git(&["config", "core.safecrlf", "true"]);
    place.git(&["config", "core.autocrlf", "true"]);
    place.begin();
    place.write("mixed", "one\r\ntwo\n");
    place.write("a", "2\n");
    assert_eq!(workspace::review(&place.files(), &[]).unwrap().files.len(), 2);
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["show", "b:mixed"]), "one\ntwo");
}

#[test]
fn modes_that_a_file_system_does_not_keep_are_those_of_the_base() {
    let place = Place::repository(&[("run", "1\n"), ("plain", "1\n"), ("link", "plain")]);
    place.git(&["update-index", "--chmod=+x", "run"]);
    let object = place.git(&["hash-object", "link"]);
    place.git(&["update-index", "--cacheinfo", &format!("120000,{object},link")]);
    place.git(&["commit", "-qm", "modes"]);
    place.git(&["config", "core.fileMode", "no"]);
    place.git(&["config", "core.symlinks", "false"]);
    place.begin();
    place.write("run", "2\n");
    place.write("plain", "2\n");
    place.chmod("plain", 0o755);
    place.write("new", "2\n");
    place.chmod("new", 0o755);
    place.write("link", "run");
    let review = workspace::review(&place.files(), &[]).unwrap();
    let modes: Vec<(String, &str)> = review
        .files
        .iter()
        .map(|file| (String::from_utf8_lossy(&file.change.path).into_owned(), file.change.mode.as_str()))
        .collect();
    let expected = [("link", "120000"), ("new", "100644"), ("plain", "100644"), ("run", "100755")];
    assert_eq!(modes, expected.map(|(name, mode)| (name.to_owned(), mode)));
    is_as_git_would(&place, &["run", "plain", "new", "link"]);
}

#[test]
fn an_empty_tree_is_one_too() {
    let place = Place::repository(&[("a", "1\n"), ("d/b", "1\n")]);
    place.begin();
    place.remove("a");
    place.remove("d");
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.tree, place.git(&["hash-object", "-t", "tree", "/dev/null"]));
    let place = Place::plain();
    place.begin();
    place.write("first", "1\n");
    place.chmod("first", 0o700);
    assert_eq!(workspace::review(&place.files(), &[]).unwrap().files.len(), 1);
    assert_eq!(fs::metadata(place.upper().join("first")).unwrap().permissions().mode() & 0o777, 0o700);
}
