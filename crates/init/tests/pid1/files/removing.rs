//! Removing files and trees, also while somebody changes them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use wire::{FileAnswer, FileAsk, FileCode, RemoveFile};

use super::{ask, ask_with, bytes};
use crate::harness::{Init, exec, program};

fn remove(path: &Path, recursive: bool) -> FileAsk {
    FileAsk::Remove(RemoveFile { path: bytes(path), recursive })
}

#[tokio::test]
async fn files_links_and_trees_are_removed() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("outside")).unwrap();
    fs::write(at("outside/kept"), "kept").unwrap();
    fs::create_dir_all(at("tree/a/b")).unwrap();
    fs::write(at("tree/a/file"), "").unwrap();
    symlink("../../outside", at("tree/a/link")).unwrap();
    symlink("outside", at("link")).unwrap();
    fs::write(at("--"), "").unwrap();
    assert_eq!(ask(&init, remove(&at("tree"), false)).await.code(), FileCode::NotEmpty);
    assert_eq!(ask(&init, remove(&at("tree"), true)).await.done().entries, 5);
    ask(&init, remove(&at("--"), false)).await.done();
    // A link goes, not what it leads to.
    ask(&init, remove(&at("link"), true)).await.done();
    assert_eq!(ask(&init, remove(&at("link"), true)).await.code(), FileCode::NotFound);
    fs::create_dir(at("empty")).unwrap();
    ask(&init, remove(&at("empty"), false)).await.done();
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["outside"]);
    assert_eq!(fs::read(at("outside/kept")).unwrap(), b"kept");
}

#[tokio::test]
async fn a_tree_of_any_depth_is_removed() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().join("deep");
    fs::create_dir(&top).unwrap();
    let mut current = rustix::fs::open(&top, OFlags::PATH, Mode::empty()).unwrap();
    for index in 0..1500 {
        rustix::fs::mkdirat(&current, "d", Mode::RWXU).unwrap();
        if index % 100 == 0 {
            rustix::fs::symlinkat("/", &current, "link").unwrap();
        }
        current = rustix::fs::openat(&current, "d", OFlags::PATH, Mode::empty()).unwrap();
    }
    // Deeper than descriptors go.
    let few = exec(&["sh", "-c", "ulimit -n 200; exec \"$0\" files", program().to_str().unwrap()]);
    assert_eq!(ask_with(&init, few, remove(&top, true), b"").await.done().entries, 1516);
    assert!(!top.exists());
}

#[tokio::test]
async fn nothing_outside_is_removed_by_a_race() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("outside/inner")).unwrap();
    fs::write(at("outside/kept"), "kept").unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (one, other, is_over) = (at("tree/a"), at("tree/b"), Arc::clone(&over));
    let swapping = thread::spawn(move || {
        let mut made = 0;
        while !is_over.load(Ordering::Acquire) {
            made += u32::from(fs::create_dir(&one).is_ok());
            let _ = fs::create_dir(one.join("inner"));
            let _ = symlink("../outside", &other);
            let _ = rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
        }
        made
    });
    for _ in 0..60 {
        let _ = fs::create_dir(at("tree"));
        match ask(&init, remove(&at("tree"), true)).await.last {
            FileAnswer::Done(_) => {}
            // Filled faster than it is emptied.
            FileAnswer::Failed(failed) => {
                let code = FileCode::try_from(failed.code).unwrap();
                assert!(matches!(code, FileCode::NotEmpty | FileCode::Changed), "{failed:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    over.store(true, Ordering::Release);
    // The name is free again only where something was removed in between.
    assert!(swapping.join().unwrap() > 1, "nothing was removed while it was swapped");
    assert_eq!(fs::read(at("outside/kept")).unwrap(), b"kept");
    assert!(at("outside/inner").is_dir());
}
