//! Trees as archives, out of a sandbox and into it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use archive::{Limits, Output, Top};
use bytes::Bytes;
use wire::{FileAnswer, FileAsk, FileCode, FileSkipped, PackTree, SkippedWhy, UnpackTree};

use super::{ask, ask_by, ask_with, bytes, worker};
use crate::harness::Init;

const LIMITS: Limits = Limits { bytes: 1 << 30, entries: 1000, name_length: 4095, depth: 100 };

fn unpack(path: &Path, top: &'static [u8]) -> FileAsk {
    FileAsk::Unpack(UnpackTree { path: bytes(path), top: Bytes::from_static(top), by_output: false })
}

#[tokio::test]
async fn a_tree_goes_out_and_in_again() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("tree/inner")).unwrap();
    fs::create_dir(at("out")).unwrap();
    fs::create_dir(at("in")).unwrap();
    fs::write(at("tree/inner").join(OsStr::from_bytes(b"\xff\n--")), vec![7; 300_000]).unwrap();
    symlink("/etc/passwd", at("tree/link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("tree/fifo"), rustix::fs::Mode::RWXU).unwrap();
    let packed = ask(&init, FileAsk::Pack(PackTree { path: bytes(&at("tree")) })).await;
    assert_eq!((packed.done().bytes, packed.done().entries), (300_000, 4));
    let why = SkippedWhy::Fifo.into();
    let skipped = FileSkipped { path: Bytes::from_static(b"tree/fifo"), why, errno: 0 };
    assert_eq!(packed.replies, [FileAnswer::Skipped(skipped)]);
    archive::unpack(&packed.output[..], File::open(at("out")).unwrap(), Top::Kept, &LIMITS).unwrap();
    let inside = at("out/tree/inner").join(OsStr::from_bytes(b"\xff\n--"));
    assert_eq!(fs::read(inside).unwrap(), vec![7; 300_000]);
    let unpacked = ask_with(&init, worker(), unpack(&at("in"), b"renamed"), &packed.output).await;
    assert_eq!((unpacked.done().bytes, unpacked.done().entries), (300_000, 4));
    assert_eq!(fs::read_link(at("in/renamed/link")).unwrap(), Path::new("/etc/passwd"));
    // What ends with a slash is what is in it.
    let packed = ask(&init, FileAsk::Pack(PackTree { path: bytes(&at("tree/inner/")) })).await;
    assert_eq!(packed.done().entries, 2 - 1);
}

#[tokio::test]
async fn an_archive_goes_through_a_pipe_that_was_passed() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("in")).unwrap();
    // Larger than anything that could be under way.
    fs::write(at("file"), vec![7; 5_000_000]).unwrap();
    let (mut reading, theirs) = std::io::pipe().unwrap();
    let packing = ask_by(&init, FileAsk::Pack(PackTree { path: bytes(&at("file")) }), theirs.into());
    let (packed, archive) = tokio::join!(
        packing,
        tokio::task::spawn_blocking(move || {
            let mut archive = Vec::new();
            reading.read_to_end(&mut archive).map(|_| archive)
        })
    );
    assert_eq!(packed.done().bytes, 5_000_000);
    let archive = archive.unwrap().unwrap();
    let (theirs, mut writing) = std::io::pipe().unwrap();
    let ask = UnpackTree { path: bytes(&at("in")), top: Bytes::from_static(b"new"), by_output: true };
    let unpacking = ask_by(&init, FileAsk::Unpack(ask), theirs.into());
    let (unpacked, written) =
        tokio::join!(unpacking, tokio::task::spawn_blocking(move || writing.write_all(&archive)));
    written.unwrap().unwrap();
    assert_eq!(unpacked.done().bytes, 5_000_000);
    assert!(fs::read(at("in/new")).unwrap() == fs::read(at("file")).unwrap());
}

#[tokio::test]
async fn what_cannot_be_packed_is_said() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    for (path, code) in [
        (fifo.as_path(), FileCode::Refused),
        (Path::new("/dev/zero"), FileCode::Refused),
        (&directory.path().join("missing"), FileCode::NotFound),
        (&directory.path().join("missing/file"), FileCode::NotFound),
        (&fifo.join("file"), FileCode::NotDirectory),
    ] {
        let answered = ask(&init, FileAsk::Pack(PackTree { path: bytes(path) })).await;
        assert_eq!(answered.code(), code, "{path:?}");
    }
}

#[tokio::test]
async fn a_wrong_archive_is_refused_with_a_reason() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("root/sub")).unwrap();
    fs::write(at("x"), "outside").unwrap();
    let mut gzip = vec![0x1f, 0x8b];
    gzip.resize(1024, 0);
    let (code, failed) = ask_with(&init, worker(), unpack(&at("root"), b""), &gzip).await.failed();
    assert_eq!((code, failed.detail.as_str()), (FileCode::Refused, "this is gzip data, not a tar stream"));
    let (code, failed) = ask_with(&init, worker(), unpack(&at("root"), b""), b"").await.failed();
    assert_eq!((code, failed.detail.as_str()), (FileCode::Refused, "the archive is cut off"));
    // One that leads upwards, by way of the name it was packed under.
    let mut upwards = Vec::new();
    archive::pack(File::open(directory.path()).unwrap(), b"x", Output::Writer(&mut upwards), &mut |_| {})
        .unwrap();
    let header = upwards.len() - 1024 - 512 - 512;
    upwards[header..header + 4].copy_from_slice(b"../x");
    upwards[header + 148..header + 156].copy_from_slice(b"        ");
    let sum: u32 = upwards[header..header + 512].iter().map(|byte| u32::from(*byte)).sum();
    upwards[header + 148..header + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let (code, failed) = ask_with(&init, worker(), unpack(&at("root"), b""), &upwards).await.failed();
    assert_eq!((code, &failed.path[..]), (FileCode::Refused, &b"../x"[..]), "{failed:?}");
    assert_eq!(fs::read(at("x")).unwrap(), b"outside");
    assert_eq!(ask(&init, unpack(&at("x"), b"")).await.code(), FileCode::NotDirectory);
    assert_eq!(ask(&init, unpack(&at("root"), b"../x")).await.code(), FileCode::Refused);
    assert_eq!(ask(&init, unpack(&at("missing"), b"")).await.code(), FileCode::NotFound);
}
