//! Whether anything waits: exactly, once after each start, and never less than there is.

use std::fs;
use std::time::{Duration, Instant};

use crate::place::Place;

/// What the kernel does at each start with the directory beside the layer.
fn start_again(place: &Place) {
    let inner = place.files().work().join("work");
    let _ = fs::remove_dir(&inner);
    fs::create_dir(inner).unwrap();
}

/// Asks again while a process that another test starts holds a copy of our lock, until it is its program.
#[track_caller]
fn waits(place: &Place) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(waits) = workspace::waits(&place.files()).unwrap() {
            return waits;
        }
        assert!(Instant::now() < deadline, "somebody else is at it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ignored_files_do_not_wait_and_others_do() {
    let place = Place::repository(&[(".gitignore", "target/\n"), ("a", "1\n")]);
    place.begin();
    place.write("target/built", "x\n");
    assert!(workspace::has_changes(&place.files()).unwrap());
    assert!(!waits(&place));
    assert!(!workspace::is_waiting(&place.files()).unwrap());
    // Until it starts again nothing can have been written, and nobody looks.
    place.write("a", "2\n");
    assert!(!waits(&place));
    start_again(&place);
    assert!(waits(&place));
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert!(!waits(&place));
    // What was written after that waits again.
    place.write("a", "3\n");
    start_again(&place);
    assert!(waits(&place));
}

#[test]
fn a_commit_of_what_is_ignored_waits() {
    let place = Place::repository(&[(".gitignore", "built\n"), ("a", "1\n")]);
    place.begin();
    place.write("built", "x\n");
    assert!(!workspace::is_waiting(&place.files()).unwrap());
    // The commit itself is inside and not known yet.
    place.write(".git/HEAD", format!("{}\n", "1".repeat(40)));
    assert!(workspace::is_waiting(&place.files()).unwrap());
    assert!(waits(&place));
}

#[test]
fn nobody_is_waited_for() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    place.write("a", "2\n");
    let review = fs::File::open(place.files().review()).unwrap();
    rustix::fs::flock(&review, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(workspace::waits(&place.files()).unwrap(), None);
}
