//! A peer that does not keep to the protocol ends its connection with the error that names what it did, and makes
//! us neither panic nor hold more than the windows.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wire::{ConnectionEnd, Exec, Incoming, LaneError, ProtocolError, Side, start};

const OPEN: u8 = 0x10;
const DATA: u8 = 0x20;
const CREDIT: u8 = 0x30;
const END: u8 = 0x40;
const CLOSE: u8 = 0x50;
const PASS: u8 = 0x60;

fn frame(channel: u32, what: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&channel.to_le_bytes()[..], &[what], &length[..3], payload].concat()
}

/// Sends `bytes` to an answering side that keeps its channels and reads nothing; says how the connection ended.
async fn end_of(bytes: &[u8]) -> ConnectionEnd {
    let (mut raw, ours) = UnixStream::pair().unwrap();
    let (read, write) = ours.into_split();
    let (connection, incoming) = start(read, write, Side::Answering);
    let keeper = tokio::spawn(keep(incoming));
    // The other end may be gone before all of it is written.
    let _ = raw.write_all(bytes).await;
    let _ = raw.shutdown().await;
    let end =
        timeout(Duration::from_secs(20), connection.closed()).await.expect("the connection does not end");
    // The stream must be closed from our side as well.
    let mut rest = Vec::new();
    let _ =
        timeout(Duration::from_secs(20), raw.read_to_end(&mut rest)).await.expect("the stream stays open");
    drop(keeper.await.unwrap());
    end
}

async fn keep(mut incoming: Incoming) -> Vec<wire::Channel> {
    let mut kept = Vec::new();
    while let Some(channel) = incoming.next().await {
        kept.push(channel);
    }
    kept
}

async fn check(frames: &[Vec<u8>], expected: ProtocolError) {
    let end = end_of(&frames.concat()).await;
    assert!(
        matches!(end, ConnectionEnd::Protocol(error) if error == expected),
        "{end:?} instead of {expected:?}"
    );
}

#[tokio::test]
async fn every_violation_has_its_error() {
    let open = || frame(1, OPEN, &[]);
    let full = || frame(1, DATA, &[0; 0x1_0000]);
    let over = vec![1, 0, 0, 0, DATA, 1, 0, 1];
    check(&[frame(1, 0x00, &[])], ProtocolError::UnknownKind(0)).await;
    check(&[frame(1, 0x80, &[])], ProtocolError::UnknownKind(8)).await;
    check(&[open(), frame(1, DATA | 4, b"x")], ProtocolError::UnknownLane(4)).await;
    check(&[frame(1, OPEN | 1, &[])], ProtocolError::UnknownLane(1)).await;
    check(&[open(), frame(1, PASS | 1, &[])], ProtocolError::UnknownLane(1)).await;
    check(&[frame(1, OPEN, b"x")], ProtocolError::BadLength(1)).await;
    check(&[open(), over], ProtocolError::BadLength(0x1_0001)).await;
    check(&[open(), frame(1, DATA, b"")], ProtocolError::BadLength(0)).await;
    check(&[open(), frame(1, CREDIT, &[0; 3])], ProtocolError::BadLength(3)).await;
    check(&[open(), frame(1, END, b"x")], ProtocolError::BadLength(1)).await;
    check(&[open(), frame(1, PASS, b"x")], ProtocolError::BadLength(1)).await;
    check(&[frame(1, DATA, b"x")], ProtocolError::UnknownChannel(1)).await;
    check(&[open(), frame(2, DATA, b"x")], ProtocolError::UnknownChannel(2)).await;
    check(&[frame(1, PASS, &[])], ProtocolError::UnknownChannel(1)).await;
    check(&[open(), frame(1, PASS, &[])], ProtocolError::BadPass(1)).await;
    check(&[open(), open()], ProtocolError::BadChannelId(1)).await;
    check(&[frame(2, OPEN, &[])], ProtocolError::BadChannelId(2)).await;
    check(&[frame(0, OPEN, &[])], ProtocolError::BadChannelId(0)).await;
    check(&[frame(5, OPEN, &[]), frame(3, OPEN, &[])], ProtocolError::BadChannelId(3)).await;
    check(&[open(), frame(1, CREDIT, &[1, 0, 0, 0])], ProtocolError::BadCredit(1)).await;
    check(&[open(), frame(1, CREDIT, &[0; 4])], ProtocolError::BadCredit(1)).await;
    check(&[open(), frame(1, CREDIT, &[255; 4])], ProtocolError::BadCredit(1)).await;
    check(&[open(), frame(1, END, &[]), frame(1, DATA, b"x")], ProtocolError::AfterEnd(1)).await;
    check(&[open(), frame(1, END, &[]), frame(1, END, &[])], ProtocolError::AfterEnd(1)).await;
    check(&[open(), frame(1, CLOSE, &[]), frame(1, END, &[])], ProtocolError::AfterEnd(1)).await;
    check(&[open(), full(), full(), full(), full(), frame(1, DATA, b"x")], ProtocolError::WindowExceeded(1))
        .await;
    check(&[open(), frame(1, DATA, b"xyz")[..9].to_vec()], ProtocolError::Truncated).await;
    check(&[open()[..7].to_vec()], ProtocolError::Truncated).await;
    let many: Vec<_> = (0..1025).map(|i| frame(2 * i + 1, OPEN, &[])).collect();
    check(&many, ProtocolError::TooManyChannels).await;
}

#[tokio::test]
async fn a_whole_stream_ends_clean() {
    assert!(matches!(end_of(&[]).await, ConnectionEnd::Clean));
    let frames = [frame(1, OPEN, &[]), frame(1, DATA | 2, b"x"), frame(1, CLOSE, &[])].concat();
    assert!(matches!(end_of(&frames).await, ConnectionEnd::Clean));
}

#[tokio::test]
async fn what_came_before_a_violation_is_delivered() {
    let (mut raw, ours) = UnixStream::pair().unwrap();
    let (read, write) = ours.into_split();
    let (_connection, mut incoming) = start(read, write, Side::Answering);
    let frames = [frame(1, OPEN, &[]), frame(1, DATA | 1, b"good"), frame(1, 0xf0, &[])].concat();
    raw.write_all(&frames).await.unwrap();
    let mut channel = incoming.next().await.unwrap();
    assert_eq!(channel.input.receiver.next().await, Ok(Some(Bytes::from_static(b"good"))));
    assert_eq!(channel.input.receiver.next().await, Err(LaneError::Lost));
    assert_eq!(channel.output.sender.send(Bytes::from_static(b"x")).await, Err(LaneError::Lost));
    assert!(incoming.next().await.is_none());
}

#[tokio::test]
async fn a_peer_that_never_reads_can_still_be_ended() {
    let (mut to_us, read) = duplex(1024);
    let (write, mut from_us) = duplex(16);
    let (connection, mut incoming) = start(read, write, Side::Answering);
    to_us.write_all(&frame(1, OPEN, &[])).await.unwrap();
    let mut channel = incoming.next().await.unwrap();
    channel.output.sender.send(vec![0; 256 * 1024].into()).await.unwrap();
    to_us.write_all(&frame(1, 0xf0, &[])).await.unwrap();
    let end = timeout(Duration::from_secs(20), connection.closed()).await.unwrap();
    assert!(matches!(end, ConnectionEnd::Protocol(ProtocolError::UnknownKind(15))));
    tokio::task::yield_now().await;
    let mut rest = Vec::new();
    timeout(Duration::from_secs(20), from_us.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.len() <= 16, "{} bytes were written after the end", rest.len());
}

async fn message_from(bytes: &[u8]) -> Result<Option<Exec>, LaneError> {
    let (mut raw, ours) = UnixStream::pair().unwrap();
    let (read, write) = ours.into_split();
    let (_connection, mut incoming) = start(read, write, Side::Answering);
    let payload = if bytes.is_empty() { Vec::new() } else { frame(1, DATA, bytes) };
    raw.write_all(&[frame(1, OPEN, &[]), payload, frame(1, END, &[])].concat()).await.unwrap();
    let mut channel = incoming.next().await.unwrap();
    channel.messages.receiver.next_message().await
}

#[tokio::test]
async fn bad_messages_are_refused_before_they_are_held() {
    assert_eq!(message_from(&[]).await, Ok(None));
    assert_eq!(message_from(&[0]).await, Ok(Some(Exec::default())));
    assert_eq!(message_from(&[2, 0x20]).await, Err(LaneError::MessageTruncated));
    assert_eq!(message_from(&[0x80]).await, Err(LaneError::MessageTruncated));
    assert!(matches!(
        message_from(&[0x81, 0x80, 0x80, 0x02]).await,
        Err(LaneError::MessageTooLarge(0x40_0001))
    ));
    assert!(matches!(message_from(&[0xff; 9]).await, Err(LaneError::MessageTooLarge(_))));
    assert!(matches!(message_from(&[0x80, 0x80, 0x80, 0x80, 0]).await, Err(LaneError::MessageTooLarge(_))));
    assert!(matches!(message_from(&[2, 0x0a, 9]).await, Err(LaneError::BadMessage(_))));
}

/// Frames of which most are nearly right, so that the walk gets far.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![9 => 1..6_u8, 1 => any::<u8>().prop_map(|b| b >> 4)];
    let lane = prop_oneof![9 => 0..4_u8, 1 => 0..16_u8];
    let payload = prop_oneof![
        Just(Vec::new()),
        Just(vec![0, 0, 2, 0]),
        proptest::collection::vec(any::<u8>(), 0..64),
        Just(vec![7; 0x1_0000]),
    ];
    (0..6_u32, kind, lane, payload).prop_map(|(channel, kind, lane, payload)| {
        let payload = if kind == 1 || kind > 3 { Vec::new() } else { payload };
        frame(channel, kind << 4 | lane, &payload)
    })
}

fn run(bytes: &[u8]) -> ConnectionEnd {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(end_of(bytes))
}

fn is_typed(end: &ConnectionEnd) -> bool {
    matches!(end, ConnectionEnd::Clean | ConnectionEnd::Protocol(_))
}

proptest! {
    #[test]
    fn random_bytes_end_in_a_typed_error(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(is_typed(&run(&bytes)));
    }

    #[test]
    fn random_frames_end_in_a_typed_error(
        frames in proptest::collection::vec(any_frame(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = [frame(1, OPEN, &[]), frames.concat()].concat();
        bytes.truncate(cut.index(bytes.len() + 1));
        prop_assert!(is_typed(&run(&bytes)));
    }
}
