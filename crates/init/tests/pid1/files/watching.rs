//! Watching, until stdin ends.

use std::fs;
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};
use prost::Message;
use tokio::time::timeout;
use wire::{
    Change, ChannelHandle, Exited, FileAnswer, FileAsk, FileCode, FileReply, Lane, LaneReceiver, LaneSender,
    WatchFile,
};

use super::{ask, bytes, request, worker};
use crate::harness::{Init, PATIENCE, exited};

/// The rest of the channel, which is open as long as this is.
struct Watching {
    messages: Lane,
    input: LaneSender,
    _handle: ChannelHandle,
}

/// Replies as they come.
struct Replies {
    lane: LaneReceiver,
    rest: BytesMut,
}

impl Replies {
    async fn next(&mut self) -> FileAnswer {
        loop {
            let mut whole = self.rest.clone().freeze();
            if let Ok(reply) = FileReply::decode_length_delimited(&mut whole) {
                self.rest.advance(self.rest.len() - whole.len());
                return reply.answer.unwrap();
            }
            let more = timeout(PATIENCE, self.lane.next()).await.unwrap().unwrap();
            self.rest.extend_from_slice(&more.unwrap_or_else(|| panic!("no more")));
        }
    }

    /// The next change and its name.
    async fn change(&mut self) -> (Change, Bytes) {
        match self.next().await {
            FileAnswer::Changed(changed) => (Change::try_from(changed.change).unwrap(), changed.name),
            other => panic!("{other:?}"),
        }
    }
}

/// Begins to watch, and waits until nothing can be missed.
async fn watch(init: &Init, path: &Path) -> (Replies, Watching) {
    let (mut channel, _) = init.started(worker()).await;
    let question = request(FileAsk::Watch(WatchFile { path: bytes(path) }));
    channel.input.sender.send(Bytes::from(question)).await.unwrap();
    let mut replies = Replies { lane: channel.error.receiver, rest: BytesMut::new() };
    assert!(matches!(replies.next().await, FileAnswer::Stat(_)));
    let watching =
        Watching { messages: channel.messages, input: channel.input.sender, _handle: channel.handle };
    (replies, watching)
}

#[tokio::test]
async fn changes_in_a_directory_are_told() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let (mut replies, mut watching) = watch(&init, directory.path()).await;
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a\n"), "x").unwrap();
    for change in [Change::Created, Change::Modified, Change::Closed] {
        assert_eq!(replies.change().await, (change, Bytes::from_static(b"a\n")));
    }
    fs::rename(at("a\n"), at("--")).unwrap();
    assert_eq!(replies.change().await, (Change::MovedFrom, Bytes::from_static(b"a\n")));
    assert_eq!(replies.change().await, (Change::MovedTo, Bytes::from_static(b"--")));
    fs::set_permissions(at("--"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(replies.change().await, (Change::Attributes, Bytes::from_static(b"--")));
    fs::remove_file(at("--")).unwrap();
    assert_eq!(replies.change().await, (Change::Removed, Bytes::from_static(b"--")));
    watching.input.finish();
    assert!(matches!(replies.next().await, FileAnswer::Done(done) if done.entries == 7));
    assert_eq!(exited(&mut watching.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn a_directory_that_goes_ends_it() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let (mut replies, mut watching) = watch(&init, directory.path()).await;
    drop(directory);
    assert_eq!(replies.change().await, (Change::Gone, Bytes::new()));
    assert!(matches!(replies.next().await, FileAnswer::Done(_)));
    assert_eq!(exited(&mut watching.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_watched() {
    let init = Init::start();
    let missing = FileAsk::Watch(WatchFile { path: Bytes::from_static(b"/nowhere") });
    assert_eq!(ask(&init, missing).await.code(), FileCode::NotFound);
}
