//! Whoever is killed while applying leaves the owner's tree as it was or as it should be; what was begun is undone by the
//! next command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use failpoint::Point;
use workspace::{Both, ReviewError};

use crate::place::Place;

/// What the process that is killed is told: where the place is, and what to do.
const PLACE: &str = "AGENTBOX_TEST_PLACE";

fn tree(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![place.owner()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(place.owner()).unwrap().to_string_lossy().into_owned();
            if name == ".git" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                waiting.push(path);
            } else {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn prepared() -> Place {
    let place =
        Place::repository(&[("a", "1\n"), ("b", "1\n"), ("d/x", "1\n"), ("f", "1\n"), ("gone", "1\n")]);
    place.begin();
    place.write("a", "2\n");
    place.write("b", "2\n");
    place.remove("d");
    place.write("d", "file\n");
    place.remove("f");
    place.write("f/in", "x\n");
    place.remove("gone");
    place.write("new/n", "x\n");
    place
}

/// Does not test anything by itself: it is what the others kill.
#[test]
fn the_one_that_is_killed() {
    let Some(root) = std::env::var_os(PLACE) else { return };
    let files = workspace::Files::of(std::path::Path::new(&root));
    let order = workspace::Order { id: "0123456789ab".to_owned(), ..workspace::Order::default() };
    let done = match std::env::var("AGENTBOX_TEST_DO").unwrap().as_str() {
        "worktree" => workspace::apply_to_worktree(&files, &order, Both::Refused).map(drop),
        "branch" => workspace::apply_to_branch(&files, &order, "b").map(drop),
        _ => workspace::record_base(&files),
    };
    done.unwrap();
}

fn strike(place: &Place, how: &str, point: Point, work: &str) -> std::process::Output {
    let flag = place.at("flag");
    fs::write(&flag, "0").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cut_off::the_one_that_is_killed", "--test-threads", "1"])
        .env(PLACE, place.at("sandbox"))
        .env("AGENTBOX_TEST_DO", work)
        .env("AGENTBOX_FAILPOINT", format!("{how} {} {}", point.name(), flag.display()))
        .output()
        .unwrap();
    assert_eq!(fs::read(&flag).unwrap(), b"1", "{} was never reached", point.name());
    output
}

const WORKTREE: [Point; 6] = [
    Point::ReviewJournalBegun,
    Point::ReviewStaged,
    Point::ReviewPlanned,
    Point::ReviewMoved,
    Point::ReviewAllMoved,
    Point::ReviewDone,
];

#[test]
fn killed_at_every_point_nothing_is_lost() {
    for point in WORKTREE {
        let place = prepared();
        let before = tree(&place);
        let output = strike(&place, "kill", point, "worktree");
        assert_eq!(output.status.signal(), Some(9), "{}", point.name());
        workspace::recover(&place.files()).unwrap();
        let now = tree(&place);
        if point == Point::ReviewDone {
            assert_ne!(now, before);
        } else {
            assert_eq!(now, before, "{}", point.name());
            workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap();
        }
        assert_eq!(fs::read(place.owner().join("f/in")).unwrap(), b"x\n");
        assert_eq!(fs::read(place.owner().join("d")).unwrap(), b"file\n");
        assert!(!place.owner().join(".git/agentbox-apply-0123456789ab").exists());
        let review = workspace::review(&place.files(), &[]).unwrap();
        assert_eq!(place.tree_of(&place.owner()), review.tree);
    }
}

#[test]
fn killed_while_undoing_it_is_undone_again() {
    let place = prepared();
    let before = tree(&place);
    strike(&place, "kill", Point::ReviewAllMoved, "worktree");
    // The next one begins by undoing, and is killed in turn.
    let output = strike(&place, "kill", Point::ReviewUndone, "worktree");
    assert_eq!(output.status.signal(), Some(9));
    assert_eq!(tree(&place), before);
    workspace::recover(&place.files()).unwrap();
    assert_eq!(tree(&place), before);
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    for point in [Point::ReviewStaged, Point::ReviewPlanned, Point::ReviewMoved, Point::ReviewAllMoved] {
        let place = prepared();
        let before = tree(&place);
        let output = strike(&place, "fail", point, "worktree");
        assert!(!output.status.success());
        assert_eq!(tree(&place), before, "{}", point.name());
        assert!(!place.files().review().join("journal").exists());
    }
}

#[test]
fn what_the_owner_wrote_after_a_cut_is_kept() {
    let place = prepared();
    strike(&place, "kill", Point::ReviewAllMoved, "worktree");
    place.own("a", "edited after it\n");
    let error = workspace::recover(&place.files()).unwrap_err();
    let ReviewError::Recovery(name, kept) = &error else { panic!("{error}") };
    assert_eq!(name, "a");
    assert_eq!(fs::read_to_string(place.owner().join("a")).unwrap(), "edited after it\n");
    assert_eq!(fs::read_to_string(kept.join("new/a")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(place.owner().join("b")).unwrap(), "1\n");
    workspace::recover(&place.files()).unwrap();
}

#[test]
fn a_base_and_a_branch_are_there_or_not() {
    let place = prepared();
    strike(&place, "kill", Point::ReviewObjectsStored, "branch");
    assert!(place.git(&["branch", "--list", "b"]).is_empty());
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    fs::remove_file(place.files().base()).unwrap();
    strike(&place, "kill", Point::ReviewBaseWritten, "base");
    assert!(!place.files().base().exists());
    assert!(!workspace::review(&place.files(), &[]).unwrap().files.is_empty());
}

#[test]
fn locks_that_a_killed_one_left_are_in_nobodys_way() {
    let place = prepared();
    workspace::review(&place.files(), &[]).unwrap();
    for name in ["refs/agentbox/look.lock", "index-owner.lock", "index-now.lock", "index-target.lock"] {
        let lock = place.files().git().join(name);
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(lock, "").unwrap();
    }
    place.write("returns", "one\r\n");
    workspace::review(&place.files(), &[]).unwrap();
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    workspace::apply_to_worktree(&place.files(), &place.order(), workspace::Both::Merged).unwrap();
}
