//! What `apply --worktree` makes of changes: files in the owner's tree, all or none.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use workspace::{Both, ReviewError};

use crate::place::Place;

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.owner().join(name)).unwrap()
}

fn nothing_is_left(place: &Place) {
    let left = |directory: &std::path::Path| {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains("agentbox-apply")).count()
    };
    assert_eq!(left(&place.owner()), 0);
    if place.owner().join(".git").is_dir() {
        assert_eq!(left(&place.owner().join(".git")), 0);
    }
    assert!(!place.files().review().join("journal").exists());
}

#[test]
fn the_tree_is_as_it_was_inside() {
    let place = Place::repository(&[
        ("a", "1\n"),
        ("gone", "2\n"),
        ("d/x", "1\n"),
        ("d/sub/y", "1\n"),
        ("f", "1\n"),
        ("deep/only/file", "1\n"),
        ("private", "1\n"),
    ]);
    fs::set_permissions(place.owner().join("private"), fs::Permissions::from_mode(0o600)).unwrap();
    place.begin();
    place.write("a", "2\n");
    place.remove("gone");
    place.remove("d");
    place.write("d", "a file\n");
    place.remove("f");
    place.write("f/in/here", "x\n");
    place.remove("deep/only/file");
    place.write("run", "#!/bin/sh\n");
    place.chmod("run", 0o755);
    place.link("ln", "a");
    place.write("private", "2\n");
    let review = workspace::review(&place.files(), &[]).unwrap();
    let index = fs::read(place.owner().join(".git/index")).unwrap();
    let brought = workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap();
    assert_eq!(brought.conflicts, Vec::<Vec<u8>>::new());
    assert_eq!(fs::read(place.owner().join(".git/index")).unwrap(), index);
    assert_eq!(place.tree_of(&place.owner()), review.tree);
    assert!(!place.owner().join("deep").exists());
    assert_eq!(fs::metadata(place.owner().join("private")).unwrap().mode() & 0o777, 0o600);
    nothing_is_left(&place);
    assert!(!workspace::is_waiting(&place.files()).unwrap());
}

#[test]
fn a_directory_without_a_repository_can_be_written() {
    let place = Place::plain();
    place.own("a", "1\n");
    place.begin();
    place.write("a", "2\n");
    place.write("new/b", "x\n");
    workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap();
    assert_eq!((text(&place, "a"), text(&place, "new/b")), ("2\n".to_owned(), "x\n".to_owned()));
    nothing_is_left(&place);
}

#[test]
fn what_both_changed_is_refused_with_a_list() {
    let place = Place::repository(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    place.begin();
    place.write("a", "agent\n");
    place.write("b", "agent\n");
    place.write("c", "agent\n");
    place.write("new", "agent\n");
    place.own("a", "owner\n");
    place.own("new", "owner\n");
    place.own("c", "agent\n");
    let error = workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap_err();
    assert!(matches!(&error, ReviewError::Conflicts(list) if *list == ["a", "new"]), "{error}");
    assert_eq!((text(&place, "a"), text(&place, "b")), ("owner\n".to_owned(), "1\n".to_owned()));
    let mut order = place.order();
    order.selection = workspace::Selection::Paths(vec![b"b".to_vec(), b"c".to_vec()]);
    workspace::apply_to_worktree(&place.files(), &order, Both::Refused).unwrap();
    assert_eq!((text(&place, "a"), text(&place, "b")), ("owner\n".to_owned(), "agent\n".to_owned()));
    nothing_is_left(&place);
}

#[test]
fn a_merge_loses_nothing_of_either() {
    let lines: Vec<String> = (0..20).map(|number| format!("{number}\n")).collect();
    let place =
        Place::repository(&[("clean", &lines.concat()), ("marked", "1\n"), ("left", "1\n"), ("kept", "1\n")]);
    place.own("binary", [0, 1, 2]);
    place.commit("binary");
    place.begin();
    let changed = |at: usize, text: &str| {
        let mut new = lines.clone();
        new[at] = format!("{text}\n");
        new.concat()
    };
    place.write("clean", changed(18, "agent"));
    place.own("clean", changed(1, "owner"));
    place.write("marked", "agent\n");
    place.own("marked", "owner\n");
    place.write("binary", [0, 9, 9]);
    place.own("binary", [0, 7, 7]);
    place.remove("left");
    place.own("left", "owner\n");
    place.write("kept", "agent\n");
    fs::remove_file(place.owner().join("kept")).unwrap();
    place.own("untouched", "owner\n");
    let brought = workspace::apply_to_worktree(&place.files(), &place.order(), Both::Merged).unwrap();
    assert!(brought.conflicts.contains(&b"marked".to_vec()));
    let clean = text(&place, "clean");
    assert!(clean.contains("agent\n") && clean.contains("owner\n") && !clean.contains("<<<<"), "{clean}");
    assert_eq!(text(&place, "marked"), "<<<<<<< yours\nowner\n=======\nagent\n>>>>>>> agent\n");
    assert_eq!(fs::read(place.owner().join("binary")).unwrap(), [0, 7, 7]);
    assert_eq!(fs::read(place.owner().join("binary.agentbox")).unwrap(), [0, 9, 9]);
    assert_eq!((text(&place, "left"), text(&place, "kept")), ("owner\n".to_owned(), "agent\n".to_owned()));
    assert_eq!(text(&place, "untouched"), "owner\n");
    nothing_is_left(&place);
}

#[test]
fn links_of_the_owners_are_never_followed() {
    let place = Place::repository(&[("d/x", "1\n")]);
    place.begin();
    place.write("d/x", "agent\n");
    let outside = place.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "1\n").unwrap();
    fs::remove_dir_all(place.owner().join("d")).unwrap();
    symlink(&outside, place.owner().join("d")).unwrap();
    for both in [Both::Refused, Both::Merged] {
        let error = workspace::apply_to_worktree(&place.files(), &place.order(), both).unwrap_err();
        assert!(matches!(error, ReviewError::Conflicts(_)), "{error}");
    }
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "1\n");
}

#[test]
fn what_is_not_gits_is_not_removed() {
    let place = Place::repository(&[("d/x", "1\n"), (".gitignore", "*.o\n")]);
    place.own("d/built.o", "x");
    place.begin();
    place.remove("d");
    place.write("d", "a file\n");
    let error = workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap_err();
    assert!(matches!(error, ReviewError::Conflicts(_)), "{error}");
    assert_eq!((text(&place, "d/x"), text(&place, "d/built.o")), ("1\n".to_owned(), "x".to_owned()));
    nothing_is_left(&place);
}
