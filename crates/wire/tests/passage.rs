//! Descriptors beside the bytes: they arrive with their channel, only where they may, and nothing is lost around them.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::time::timeout;
use wire::{
    Channel, Connection, ConnectionEnd, Incoming, LaneError, NoDescriptorLeft, ProtocolError, Side,
    over_pipes, over_socket, over_socket_of_another_kernel,
};

const OPEN: u8 = 0x10;
const PASS: u8 = 0x60;

fn pair() -> ((Connection, Incoming), (Connection, Incoming)) {
    let (near, far) = UnixStream::pair().unwrap();
    (over_socket(near, Side::Asking).unwrap(), over_socket(far, Side::Answering).unwrap())
}

async fn next(incoming: &mut Incoming) -> Channel {
    timeout(Duration::from_secs(20), incoming.next()).await.unwrap().unwrap()
}

fn read_to_end(descriptor: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn whoever_looks_now_and_then_loses_nothing_and_sees_the_end() {
    let (near, far) = UnixStream::pair().unwrap();
    let (asking, from_there) = over_socket(near, Side::Asking).unwrap();
    let (answering, mut incoming) = over_socket_of_another_kernel(far).unwrap();
    let Channel { messages, input, mut output, error, handle } = asking.open().unwrap();
    for number in 0..20_u8 {
        output.sender.send(Bytes::from(vec![number; 10_000])).await.unwrap();
        if number % 8 == 7 {
            // Longer than it waits between two looks.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
    output.sender.finish();
    let mut far = next(&mut incoming).await;
    let mut heard = Vec::new();
    while let Some(bytes) = far.output.receiver.next().await.unwrap() {
        heard.extend_from_slice(&bytes);
    }
    assert_eq!(heard, (0..20).flat_map(|number| vec![number; 10_000]).collect::<Vec<u8>>());
    drop((messages, input, output.receiver, error, handle, asking, from_there, answering));

    let (near, far) = UnixStream::pair().unwrap();
    let (answering, _incoming) = over_socket_of_another_kernel(far).unwrap();
    drop(near);
    timeout(Duration::from_secs(20), answering.closed()).await.unwrap();
}

#[tokio::test]
async fn each_channel_gets_its_own_among_much_else() {
    let ((asking, _), (_answering, mut incoming)) = pair();
    let mut expected = Vec::new();
    for number in 0..50 {
        let mut channel = asking.open().unwrap();
        channel.output.sender.send(Bytes::from(vec![7; 40_000])).await.unwrap();
        if number % 3 != 0 {
            let (read, mut write) = std::io::pipe().unwrap();
            write!(write, "{number}").unwrap();
            channel.handle.pass(read.into()).unwrap();
        }
        channel.messages.sender.send(Bytes::from(format!("{number}"))).await.unwrap();
        expected.push(channel);
    }
    for number in 0..50 {
        let mut channel = next(&mut incoming).await;
        assert_eq!(channel.messages.receiver.next().await.unwrap().unwrap(), format!("{number}"));
        let passed = channel.handle.take_passed().unwrap();
        assert_eq!(passed.map(read_to_end), (number % 3 != 0).then(|| number.to_string()));
        assert!(channel.handle.take_passed().unwrap().is_none());
        let mut length = 0;
        while length < 40_000 {
            length += channel.output.receiver.next().await.unwrap().unwrap().len();
        }
    }
}

#[tokio::test]
async fn what_nobody_takes_is_closed_with_its_channel() {
    let ((asking, _), (_answering, mut incoming)) = pair();
    let (mut read, write) = std::io::pipe().unwrap();
    let channel = asking.open().unwrap();
    channel.handle.pass(write.into()).unwrap();
    drop(next(&mut incoming).await);
    let ended = tokio::task::spawn_blocking(move || read.read(&mut [0]).unwrap());
    assert_eq!(timeout(Duration::from_secs(20), ended).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn whoever_asks_takes_none() {
    let (raw, ours) = UnixStream::pair().unwrap();
    let (connection, _incoming) = over_socket(ours, Side::Asking).unwrap();
    let channel = connection.open().unwrap();
    send(&raw, &header(1, PASS), Some(raw.as_fd()));
    assert!(matches!(end_of(&connection).await, ConnectionEnd::Protocol(ProtocolError::BadPass(1))));
    assert!(channel.handle.take_passed().unwrap().is_none());
}

#[tokio::test]
async fn more_or_fewer_than_announced_end_the_connection() {
    for (what, first, second) in [("none", false, false), ("a second", true, true)] {
        let (raw, ours) = UnixStream::pair().unwrap();
        let (connection, _incoming) = over_socket(ours, Side::Answering).unwrap();
        send(&raw, &header(1, OPEN), None);
        send(&raw, &header(1, PASS), first.then_some(raw.as_fd()));
        send(&raw, &header(1, PASS), second.then_some(raw.as_fd()));
        let end = end_of(&connection).await;
        assert!(matches!(end, ConnectionEnd::Protocol(ProtocolError::BadPass(1))), "{what}: {end:?}");
    }
}

#[tokio::test]
async fn descriptors_without_frames_pile_up_nowhere() {
    let (raw, ours) = UnixStream::pair().unwrap();
    let (connection, mut incoming) = over_socket(ours, Side::Answering).unwrap();
    let (mut read, write) = std::io::pipe().unwrap();
    for id in 0..40 {
        send(&raw, &header(2 * id + 1, OPEN), Some(write.as_fd()));
    }
    for _ in 0..40 {
        let channel = next(&mut incoming).await;
        assert!(channel.handle.take_passed().unwrap().is_none());
    }
    // Ours, and as many as may be ahead of their frames.
    assert!(copies_of(&write) <= 1 + 4, "{} are held", copies_of(&write));
    drop(write);
    drop((raw, connection, incoming));
    let ended = tokio::task::spawn_blocking(move || read.read(&mut [0]).unwrap());
    assert_eq!(timeout(Duration::from_secs(20), ended).await.unwrap().unwrap(), 0);
}

/// How many descriptors of this process are of the same pipe, the end that is read not counted.
fn copies_of(pipe: impl AsFd) -> usize {
    let number = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let wanted = number(rustix::fs::fstat(pipe).unwrap());
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|entry| rustix::fs::stat(entry.path()).is_ok_and(|stat| number(stat) == wanted)).count() - 1
}

/// A terminal carries bytes both ways and refuses what is passed, as a socket does for a user who has too many on
/// their way.
#[tokio::test]
async fn one_that_cannot_be_sent_is_missed_by_its_own_channel() {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&near).unwrap();
    let path = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far: OwnedFd = std::fs::File::options().read(true).write(true).open(path).unwrap().into();
    let mut settings = tcgetattr(&far).unwrap();
    settings.make_raw();
    tcsetattr(&far, OptionalActions::Now, &settings).unwrap();
    let (asking, _) = over_socket(near, Side::Asking).unwrap();
    let (_answering, mut incoming) = over_pipes(far.try_clone().unwrap(), far, Side::Answering).unwrap();
    for number in 0..3 {
        let mut channel = asking.open().unwrap();
        if number != 1 {
            channel.handle.pass(std::io::pipe().unwrap().0.into()).unwrap();
        }
        channel.messages.sender.send(Bytes::from_static(b"x")).await.unwrap();
        let mut theirs = next(&mut incoming).await;
        theirs.messages.receiver.next().await.unwrap().unwrap();
        let passed = theirs.handle.take_passed().map(|passed| passed.is_some());
        assert_eq!(passed, if number == 1 { Ok(false) } else { Err(NoDescriptorLeft) });
    }
}

/// The limit is the process's, which has other tests in it: the test is run again as a process of its own.
#[test]
fn one_that_is_lost_is_missed_by_its_own_channel() {
    const ALONE: &str = "AGENTBOX_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().unwrap();
        let name = "one_that_is_lost_is_missed_by_its_own_channel";
        let run =
            std::process::Command::new(program).args(["--exact", name]).env(ALONE, "1").output().unwrap();
        assert!(run.status.success() && String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ((asking, _), (_answering, mut incoming)) = pair();
        let pipes: Vec<_> = (0..3)
            .map(|number| {
                let (read, mut write) = std::io::pipe().unwrap();
                write!(write, "{number}").unwrap();
                read
            })
            .collect();
        let mut channels: Vec<_> = (0..3).map(|_| asking.open().unwrap()).collect();
        for (number, (channel, pipe)) in channels.iter_mut().zip(&pipes).enumerate() {
            channel.handle.pass(pipe.as_fd().try_clone_to_owned().unwrap()).unwrap();
            // For the first one there is no number left when it comes.
            let before = rustix::process::getrlimit(Resource::Nofile);
            if number == 0 {
                let limit = Rlimit { current: Some(3), ..before };
                rustix::process::setrlimit(Resource::Nofile, limit).unwrap();
            }
            channel.messages.sender.send(Bytes::from_static(b"x")).await.unwrap();
            let mut theirs = next(&mut incoming).await;
            theirs.messages.receiver.next().await.unwrap().unwrap();
            rustix::process::setrlimit(Resource::Nofile, before).unwrap();
            let passed = theirs.handle.take_passed().map(|passed| passed.map(read_to_end));
            match number {
                0 => assert_eq!(passed, Err(NoDescriptorLeft)),
                _ => assert_eq!(passed, Ok(Some(number.to_string()))),
            }
        }
    });
}

#[tokio::test]
async fn pipes_carry_none() {
    let (read, write) = std::io::pipe().unwrap();
    let (connection, _incoming) = over_pipes(read.into(), write.into(), Side::Asking).unwrap();
    let (mine, _) = std::io::pipe().unwrap();
    assert_eq!(connection.open().unwrap().handle.pass(mine.into()), Err(LaneError::NoPassage));
}

fn header(channel: u32, what: u8) -> [u8; 8] {
    let [a, b, c, d] = channel.to_le_bytes();
    [a, b, c, d, what, 0, 0, 0]
}

fn send(socket: &UnixStream, bytes: &[u8], with: Option<BorrowedFd<'_>>) {
    let descriptors: Vec<_> = with.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
}

async fn end_of(connection: &Connection) -> ConnectionEnd {
    timeout(Duration::from_secs(20), connection.closed()).await.expect("the connection does not end")
}
