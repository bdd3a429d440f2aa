//! Reading, writing and looking at one file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use wire::{FileAsk, FileCode, FileKind, ReadFile, StatFile, WriteFile, WriteHow};

use super::{ask, ask_with, bytes, stat, worker};
use crate::harness::{Init, exec, noise, program};

fn read(path: &Path, offset: u64, length: u64) -> FileAsk {
    FileAsk::Read(ReadFile { path: bytes(path), offset, length })
}

fn write(path: &Path, how: WriteHow) -> FileAsk {
    FileAsk::Write(WriteFile { path: bytes(path), how: Some(how), mode: None })
}

#[tokio::test]
async fn a_file_is_read_in_whole_and_in_part() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let contents = noise(3_000_000);
    fs::write(&path, &contents).unwrap();
    let answered = ask(&init, read(&path, 0, 0)).await;
    assert!(answered.output == contents);
    assert_eq!((answered.stat().size, answered.done().bytes), (3_000_000, 3_000_000));
    // Somebody who lost the connection goes on.
    let answered = ask(&init, read(&path, 2_999_990, 0)).await;
    assert_eq!((&answered.output[..], answered.done().bytes), (&contents[2_999_990..], 10));
    assert_eq!(ask(&init, read(&path, 100, 7)).await.output, contents[100..107]);
    assert_eq!(ask(&init, read(&path, 2_999_999, 7)).await.done().bytes, 1);
    assert_eq!(ask(&init, read(&path, 5_000_000, 0)).await.done().bytes, 0);
    assert_eq!(ask(&init, read(&path, u64::MAX, 0)).await.failed().1.errno, libc::EINVAL);
    let status = ask(&init, read(Path::new("/proc/self/status"), 0, 0)).await;
    assert!(status.output.starts_with(b"Name:\t"), "{:?}", status.output);
}

#[tokio::test]
async fn what_is_no_file_is_not_read() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    for path in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
        assert_eq!(ask(&init, read(path, 0, 0)).await.code(), FileCode::Refused, "{path:?}");
        let answered = ask_with(&init, worker(), write(path, WriteHow::Truncate(())), b"x").await;
        assert_eq!(answered.code(), FileCode::Refused, "{path:?}");
    }
    assert_eq!(ask(&init, read(directory.path(), 0, 0)).await.code(), FileCode::IsDirectory);
    assert_eq!(ask(&init, read(&directory.path().join("missing"), 0, 0)).await.code(), FileCode::NotFound);
    assert_eq!(ask(&init, read(&fifo.join("x"), 0, 0)).await.code(), FileCode::NotDirectory);
}

#[tokio::test]
async fn a_file_is_written_and_gone_on_with() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let contents = noise(2_000_000);
    let begin = ask_with(&init, worker(), write(&path, WriteHow::Truncate(())), &contents[..1_234_567]).await;
    assert_eq!(begin.done().bytes, 1_234_567);
    // Whoever lost the connection asks how far it came.
    let size = ask(&init, stat(&path)).await.stat().size;
    let rest = &contents[usize::try_from(size).unwrap()..];
    ask_with(&init, worker(), write(&path, WriteHow::At(size)), rest).await.done();
    assert!(fs::read(&path).unwrap() == contents);
    ask_with(&init, worker(), write(&path, WriteHow::At(1)), b"xyz").await.done();
    assert_eq!(&fs::read(&path).unwrap()[..5], &[&contents[..1], b"xyz", &contents[4..5]].concat());
    assert_eq!(fs::metadata(&path).unwrap().len(), 2_000_000);
    let beyond = ask_with(&init, worker(), write(&path, WriteHow::At(2_000_001)), b"x").await;
    assert_eq!(beyond.code(), FileCode::Changed);
    ask_with(&init, worker(), write(&path, WriteHow::Append(())), b"end").await.done();
    assert_eq!(&fs::read(&path).unwrap()[2_000_000..], b"end");
    ask_with(&init, worker(), write(&path, WriteHow::Truncate(())), b"new").await.done();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let nohow = FileAsk::Write(WriteFile { path: bytes(&path), how: None, mode: None });
    assert_eq!(ask(&init, nohow).await.code(), FileCode::Refused);
    let missing = write(&directory.path().join("missing/file"), WriteHow::Append(()));
    assert_eq!(ask(&init, missing).await.code(), FileCode::NotFound);
    assert_eq!(ask(&init, write(directory.path(), WriteHow::Append(()))).await.code(), FileCode::IsDirectory);
}

#[tokio::test]
async fn a_file_gets_its_rights() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    ask(&init, write(&path, WriteHow::Append(()))).await.done();
    assert_eq!(mode(&path), 0o644);
    let how = Some(WriteHow::Append(()));
    ask(&init, FileAsk::Write(WriteFile { path: bytes(&path), how, mode: Some(0o4777) })).await.done();
    assert_eq!(mode(&path), 0o777);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    ask(&init, write(&path, WriteHow::Truncate(()))).await.done();
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_full_disk_is_called_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--mount-proc",
        "--",
    ]);
    command.args(["sh", "-c", "mount -t tmpfs -o size=64k none \"$1\" && exec \"$2\" --landlock off", "sh"]);
    command.arg(directory.path()).arg(program());
    let init = Init::from_command(command);
    let question = write(&directory.path().join("file"), WriteHow::Truncate(()));
    let answered = ask_with(&init, worker(), question, &noise(200_000)).await;
    assert_eq!(answered.code(), FileCode::NoSpace);
}

#[tokio::test]
async fn a_file_is_looked_at() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "12345").unwrap();
    symlink("file", &link).unwrap();
    let (found, expected) = (ask(&init, stat(&file)).await.stat(), fs::metadata(&file).unwrap());
    assert_eq!(found.kind, i32::from(FileKind::File));
    assert_eq!((found.size, found.inode, found.names), (5, expected.ino(), 1));
    assert_eq!(
        (found.modified_seconds, i64::from(found.modified_nanoseconds)),
        (expected.mtime(), expected.mtime_nsec())
    );
    let found = ask(&init, stat(&link)).await.stat();
    assert_eq!((found.kind, &found.target[..]), (i32::from(FileKind::SymbolicLink), &b"file"[..]));
    let followed = ask(&init, FileAsk::Stat(StatFile { path: bytes(&link), follow: true })).await.stat();
    assert_eq!((followed.kind, followed.size), (i32::from(FileKind::File), 5));
    assert_eq!(ask(&init, stat(Path::new("/dev/null"))).await.stat().kind, i32::from(FileKind::Device));
}

#[tokio::test]
async fn names_are_bytes_and_nothing_else() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    for name in [&b"--"[..], b"-rf", b"a\nb", b"\xff\xfe", b" ", b"*", b"$(x)", b"\x1b[31m"] {
        let path = directory.path().join(OsStr::from_bytes(name));
        ask_with(&init, worker(), write(&path, WriteHow::Truncate(())), name).await.done();
        assert_eq!(ask(&init, read(&path, 0, 0)).await.output, name);
        assert_eq!(fs::read(&path).unwrap(), name);
    }
    // A path that is not absolute begins where the process does.
    let here =
        wire::Exec { workdir: bytes(directory.path()), ..exec(&[program().to_str().unwrap(), "files"]) };
    let relative = FileAsk::Read(ReadFile { path: Bytes::from_static(b"--"), ..ReadFile::default() });
    assert_eq!(ask_with(&init, here, relative, b"").await.output, &b"--"[..]);
}
