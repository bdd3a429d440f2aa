//! Whether anything waits: exactly, once after each start, and never less than there is.

use std::fs;

use crate::place::Place;

/// What the kernel does at each start with the directory beside the layer.
fn start_again(place: &Place) {
    let inner = place.files().work().join("work");
    let _ = fs::remove_dir(&inner);
    fs::create_dir(inner).unwrap();
}

#[test]
fn ignored_files_do_not_wait_and_others_do() {
    let place = Place::repository(&[(".gitignore", "target/\n"), ("a", "1\n")]);
    place.begin();
    place.write("target/built", "x\n");
    assert!(workspace::has_changes(&place.files()).unwrap());
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(false));
    assert!(!workspace::is_waiting(&place.files()).unwrap());
    // Until it starts again nothing can have been written, and nobody looks.
    place.write("a", "2\n");
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(false));
    start_again(&place);
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(true));
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(false));
    // What was written after that waits again.
    place.write("a", "3\n");
    start_again(&place);
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(true));
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
    assert_eq!(workspace::waits(&place.files()).unwrap(), Some(true));
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
