//! `init files`, started inside by init as the supervisor does it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod contents;
mod directories;
mod removing;
mod trees;
mod watching;

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::{Buf, Bytes};
use prost::Message;
use wire::{
    Exec, FileAnswer, FileAsk, FileCode, FileDone, FileFailed, FileReply, FileRequest, FileStat, StatFile,
};

use crate::harness::{Init, Outcome, exec, program};

/// What came of one request.
#[derive(Debug)]
struct Answered {
    output: Bytes,
    /// All replies but the last.
    replies: Vec<FileAnswer>,
    last: FileAnswer,
}

impl Answered {
    fn done(&self) -> FileDone {
        match self.last {
            FileAnswer::Done(done) => done,
            ref other => panic!("{other:?}"),
        }
    }

    fn failed(&self) -> (FileCode, FileFailed) {
        match &self.last {
            FileAnswer::Failed(failed) => (FileCode::try_from(failed.code).unwrap(), failed.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn code(&self) -> FileCode {
        self.failed().0
    }

    /// The one reply before the last.
    fn stat(&self) -> FileStat {
        match self.replies.as_slice() {
            [FileAnswer::Stat(stat)] => stat.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// A request as it goes over stdin.
fn request(ask: FileAsk) -> Vec<u8> {
    FileRequest { ask: Some(ask) }.encode_length_delimited_to_vec()
}

/// The process that answers requests.
fn worker() -> Exec {
    exec(&[program().to_str().unwrap(), "files"])
}

async fn ask(init: &Init, ask: FileAsk) -> Answered {
    ask_with(init, worker(), ask, b"").await
}

/// Asks once, with bytes behind the question.
async fn ask_with(init: &Init, worker: Exec, ask: FileAsk, contents: &[u8]) -> Answered {
    let input = Bytes::from([&request(ask)[..], contents].concat());
    ask_raw(init, worker, input).await
}

/// Asks once, and passes a pipe for an archive.
async fn ask_by(init: &Init, ask: FileAsk, pipe: OwnedFd) -> Answered {
    answered(&init.run_passing(worker(), request(ask).into(), Some(pipe)).await)
}

async fn ask_raw(init: &Init, worker: Exec, input: Bytes) -> Answered {
    answered(&init.run_with(worker, input).await)
}

fn answered(outcome: &Outcome) -> Answered {
    let mut replies = Vec::new();
    let mut rest = outcome.error.clone();
    while rest.has_remaining() {
        replies.push(FileReply::decode_length_delimited(&mut rest).unwrap().answer.unwrap());
    }
    let last = replies.pop().unwrap();
    let expected = match last {
        FileAnswer::Done(_) => 0,
        FileAnswer::Failed(_) => 1,
        ref other => panic!("{other:?} was the last"),
    };
    assert_eq!((outcome.exited.code, outcome.exited.signal), (expected, 0));
    Answered { output: outcome.output.clone(), replies, last }
}

fn bytes(path: &Path) -> Bytes {
    Bytes::copy_from_slice(path.as_os_str().as_bytes())
}

fn stat(path: &Path) -> FileAsk {
    FileAsk::Stat(StatFile { path: bytes(path), follow: false })
}

#[tokio::test]
async fn nonsense_is_refused_and_said() {
    let init = Init::start();
    for input in [&b""[..], b"\xff\xff\xff\xff", b"\x00", b"\x05\x00\x00", b"\x03\xff\xff\xff"] {
        let answered = ask_raw(&init, worker(), Bytes::from_static(input)).await;
        assert_eq!(answered.code(), FileCode::Refused, "{input:?}");
        assert_eq!((answered.replies.len(), answered.output.len()), (0, 0));
    }
    let empty = FileAsk::Stat(StatFile::default());
    assert_eq!(ask(&init, empty).await.code(), FileCode::Refused);
    let long = FileAsk::Stat(StatFile { path: vec![b'a'; 5000].into(), follow: false });
    assert_eq!(ask(&init, long).await.code(), FileCode::TooLarge);
}

#[tokio::test]
async fn rights_are_those_of_the_agent() {
    let Some(init) = Init::with_all_ids() else { return };
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
    };
    let copy = directory.path().join("init");
    std::fs::copy(program(), &copy).unwrap();
    open(&copy, 0o755).unwrap();
    open(directory.path(), 0o755).unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    open(&secret, 0o600).unwrap();
    let agent = || Exec { uid: 1000, gid: 1000, ..exec(&[copy.to_str().unwrap(), "files"]) };
    for question in [
        FileAsk::Read(wire::ReadFile { path: bytes(&secret), ..Default::default() }),
        FileAsk::Remove(wire::RemoveFile { path: bytes(&secret), recursive: true }),
        FileAsk::Pack(wire::PackTree { path: bytes(&secret) }),
        FileAsk::MakeDirectory(wire::MakeDirectory {
            path: bytes(&directory.path().join("d")),
            ..Default::default()
        }),
    ] {
        let (code, failed) = ask_with(&init, agent(), question.clone(), b"").await.failed();
        assert_eq!((code, failed.errno), (FileCode::Permission, libc::EACCES), "{question:?}");
    }
    assert_eq!(ask_with(&init, agent(), stat(&secret), b"").await.stat().size, 6);
}
