//! Somebody swaps a directory for a link while it is packed or unpacked: nothing outside is ever written or read.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use archive::{Output, pack};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::builder::{Builder, Place};

const ROUNDS: usize = 10_000;

/// Swaps `one` and `other` for each other as long as `work` goes on, and at least so many times.
fn while_swapping(one: &Path, other: &Path, mut work: impl FnMut()) {
    /// However the swapping ends, so that the work never goes on alone.
    struct SetAtLast<'over>(&'over AtomicBool);
    impl Drop for SetAtLast<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _at_last = SetAtLast(&over);
            for _ in 0..ROUNDS {
                match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
                    // A link in the place of a directory is removed before the directory is made.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => panic!("the two cannot be swapped: {errno}"),
                }
                // Else the other side might never see one of the two.
                thread::yield_now();
            }
        });
        while !over.load(Ordering::Acquire) {
            work();
        }
    });
}

#[test]
fn unpacking_never_leaves_its_directory() {
    let place = Place::new();
    let (directory, link) = (place.root().join("a"), place.root().join("b"));
    fs::create_dir_all(directory.join("c")).unwrap();
    fs::create_dir(place.outside().join("c")).unwrap();
    symlink("../outside", &link).unwrap();
    let bytes = Builder::default()
        .directory("a")
        .file("a/secret", "overwritten")
        .directory("a/c")
        .file("a/c/new", "x")
        .hard_link("a/hard", "a/secret")
        .symbolic_link("a/soft", "x")
        .file("a/d/e", "x")
        .end();
    let mut outcomes = [0, 0];
    while_swapping(&directory, &link, || {
        outcomes[usize::from(place.unpack(&bytes).is_ok())] += 1;
        if !directory.is_symlink() && !link.is_symlink() {
            // A directory took the link's place, and there would be nothing to swap any more.
            let fresh = place.root().join("fresh");
            symlink("../outside", &fresh).unwrap();
            renameat_with(CWD, &fresh, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            fs::remove_dir_all(&fresh).unwrap();
        }
    });
    fs::remove_dir(place.outside().join("c")).unwrap();
    place.assert_untouched();
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "the race was not run: {outcomes:?}");
}

#[test]
fn packing_never_leaves_its_directory() {
    let place = Place::new();
    let (directory, link) = (place.root().join("a"), place.root().join("b"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("mine"), "mine").unwrap();
    symlink("../outside", &link).unwrap();
    let root = File::open(place.root()).unwrap();
    let mut seen = [0, 0];
    while_swapping(&directory, &link, || {
        for name in [&b"."[..], b"a", b"a/secret", b"a/mine"] {
            let mut bytes = Vec::new();
            let _ = pack(&root, name, Output::Writer(&mut bytes), &mut |_| {});
            let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
            assert!(!has(b"/secret") && !has(b"secret\0"), "a file from outside");
            seen[usize::from(has(b"mine"))] += 1;
        }
    });
    assert!(seen[0] > 0 && seen[1] > 0, "the race was not run: {seen:?}");
    place.assert_untouched();
}

#[test]
fn a_file_that_becomes_a_pipe_is_not_packed_and_holds_nothing_up() {
    let place = Place::new();
    let (file, fifo) = (place.root().join("a"), place.root().join("b"));
    fs::write(&file, "mine").unwrap();
    rustix::fs::mkfifoat(CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let root = File::open(place.root()).unwrap();
    while_swapping(&file, &fifo, || {
        let mut bytes = Vec::new();
        let _ = pack(&root, b"a", Output::Writer(&mut bytes), &mut |_| {});
        let packed = pack(&root, b".", Output::Writer(&mut bytes), &mut |_| {}).unwrap();
        // A pipe that was taken for a file would be an empty one.
        assert_eq!(packed.bytes, 4 * packed.entries);
    });
}
