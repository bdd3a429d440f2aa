//! Listing, making and moving.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use bytes::Bytes;
use wire::{FileAnswer, FileAsk, FileCode, FileKind, ListDirectory, MakeDirectory, MoveFile};

use super::{Answered, ask, bytes};
use crate::harness::Init;

fn list(path: &Path, after: &[u8], most: u32) -> FileAsk {
    FileAsk::List(ListDirectory { path: bytes(path), after: Bytes::copy_from_slice(after), most })
}

fn names(answered: &Answered) -> Vec<Bytes> {
    let name = |reply: &FileAnswer| match reply {
        FileAnswer::Entry(entry) => entry.name.clone(),
        other => panic!("{other:?}"),
    };
    answered.replies.iter().map(name).collect()
}

#[tokio::test]
async fn a_directory_is_listed_page_by_page() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    for index in 0..2500 {
        fs::write(directory.path().join(format!("{index:04}")), "").unwrap();
    }
    let (mut all, mut pages) = (Vec::<Bytes>::new(), 0);
    loop {
        let after = all.last().cloned().unwrap_or_default();
        let answered = ask(&init, list(directory.path(), &after, 0)).await;
        assert!(answered.replies.len() <= 1000);
        assert_eq!(answered.done().entries, answered.replies.len() as u64);
        all.extend(names(&answered));
        pages += 1;
        // What changes before the place where we are does not move it.
        fs::remove_file(directory.path().join(OsStr::from_bytes(&all[pages]))).unwrap();
        if !answered.done().more {
            break;
        }
    }
    assert_eq!((pages, all.len()), (3, 2500));
    assert!(all.is_sorted());
    let answered = ask(&init, list(directory.path(), b"2490", 3)).await;
    assert_eq!(
        (names(&answered), answered.done().more),
        (vec!["2491".into(), "2492".into(), "2493".into()], true)
    );
    assert_eq!(ask(&init, list(directory.path(), b"", 1_000_000)).await.replies.len(), 1000);
}

#[tokio::test]
async fn entries_are_what_they_are() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let hostile = [&b"\x1b[2J"[..], b"--", b"a\nb", b"\xff"];
    for name in hostile {
        fs::write(directory.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    symlink("/nowhere", directory.path().join("link")).unwrap();
    fs::create_dir(directory.path().join("directory")).unwrap();
    let answered = ask(&init, list(directory.path(), b"", 0)).await;
    let names = names(&answered);
    assert!(hostile.iter().all(|name| names.iter().any(|found| found == name)), "{names:?}");
    let kind = |wanted: &str| {
        answered.replies.iter().find_map(|reply| match reply {
            FileAnswer::Entry(entry) if entry.name == wanted => entry.stat.clone(),
            _ => None,
        })
    };
    assert_eq!(kind("link").unwrap().kind, i32::from(FileKind::SymbolicLink));
    assert_eq!(kind("link").unwrap().target, "/nowhere");
    assert_eq!(kind("directory").unwrap().kind, i32::from(FileKind::Directory));
    assert_eq!(ask(&init, list(&directory.path().join("--"), b"", 0)).await.code(), FileCode::NotDirectory);
    assert_eq!(ask(&init, list(&directory.path().join("none"), b"", 0)).await.code(), FileCode::NotFound);
    assert_eq!(ask(&init, list(&directory.path().join("directory"), b"", 0)).await.done().entries, 0);
}

#[tokio::test]
async fn directories_are_made() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let make = |name: &str, parents, mode| {
        FileAsk::MakeDirectory(MakeDirectory { path: bytes(&directory.path().join(name)), parents, mode })
    };
    let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().mode() & 0o7777;
    ask(&init, make("a", false, None)).await.done();
    assert_eq!(mode("a"), 0o755);
    assert_eq!(ask(&init, make("a", false, None)).await.code(), FileCode::Exists);
    assert_eq!(ask(&init, make("b/c", false, None)).await.code(), FileCode::NotFound);
    ask(&init, make("a/b//c/d/", true, Some(0o4777))).await.done();
    assert_eq!((mode("a/b"), mode("a/b/c"), mode("a/b/c/d")), (0o755, 0o755, 0o777));
    assert_eq!(ask(&init, make("a/b/c/d", true, None)).await.done().entries, 0);
    fs::write(directory.path().join("file"), "").unwrap();
    assert_eq!(ask(&init, make("file", true, None)).await.code(), FileCode::Exists);
    assert_eq!(ask(&init, make("file/x", true, None)).await.code(), FileCode::NotDirectory);
}

#[tokio::test]
async fn files_are_moved() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let rename = |from: &str, to: &str, replace| {
        FileAsk::Move(MoveFile { from: bytes(&at(from)), to: bytes(&at(to)), replace })
    };
    fs::write(at("a"), "a").unwrap();
    fs::write(at("b"), "b").unwrap();
    fs::create_dir(at("d")).unwrap();
    let (code, failed) = ask(&init, rename("a", "b", false)).await.failed();
    assert_eq!((code, failed.path), (FileCode::Exists, bytes(&at("b"))));
    assert_eq!(fs::read(at("b")).unwrap(), b"b");
    ask(&init, rename("a", "b", true)).await.done();
    assert_eq!(fs::read(at("b")).unwrap(), b"a");
    ask(&init, rename("b", "d/--", false)).await.done();
    assert_eq!(fs::read(at("d/--")).unwrap(), b"a");
    assert_eq!(ask(&init, rename("b", "c", true)).await.code(), FileCode::NotFound);
    fs::write(at("c"), "").unwrap();
    assert_eq!(ask(&init, rename("c", "d", true)).await.code(), FileCode::IsDirectory);
    assert_eq!(ask(&init, rename("d", "c", true)).await.code(), FileCode::NotDirectory);
    fs::create_dir(at("e")).unwrap();
    assert_eq!(ask(&init, rename("e", "d", true)).await.code(), FileCode::NotEmpty);
}
