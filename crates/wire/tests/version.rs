//! The bytes on the wire are frozen: what each side writes equals the fixture, and what the fixture says is
//! understood.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use wire::{
    Ask, Connection, Event, Exec, ExecEvent, ExecInput, Exited, Failed, Incoming, Request, Side, Started,
    Step, Tell, WindowSize, start,
};

fn fixture(section: &str) -> Vec<u8> {
    let text = include_str!("fixtures/version-1.hex");
    let start = text.find(&format!("[{section}]\n")).unwrap() + section.len() + 3;
    let body = text[start..].split("\n[").next().unwrap();
    let code: Vec<&str> = body.lines().map(|line| line.split('#').next().unwrap()).collect();
    let digits: Vec<char> = code.concat().chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

fn begin(side: Side) -> (DuplexStream, Connection, Incoming) {
    let (raw, ours) = duplex(1 << 20);
    let (read, write) = split(ours);
    let (connection, incoming) = start(read, write, side);
    (raw, connection, incoming)
}

fn request() -> Request {
    let exec = Exec {
        argv: vec![Bytes::from_static(b"true")],
        environment: vec![Bytes::from_static(b"A=b")],
        workdir: Bytes::from_static(b"/"),
        uid: 1000,
        gid: 1000,
        terminal: Some(WindowSize { rows: 24, columns: 80 }),
        timeout_ms: 1500,
        grace_ms: 300,
        ..Exec::default()
    };
    Request { version: 1, ask: Some(Ask::Exec(exec)) }
}

fn told() -> [ExecInput; 2] {
    let tell = |tell| ExecInput { tell: Some(tell) };
    [tell(Tell::Signal(15)), tell(Tell::Resize(WindowSize { rows: 25, columns: 81 }))]
}

fn events() -> [ExecEvent; 4] {
    let event = |event| ExecEvent { event: Some(event) };
    [
        event(Event::Started(Started { pid: 7, ..Started::default() })),
        event(Event::Exited(Exited { code: 3, timed_out: true, ..Exited::default() })),
        event(Event::Failed(Failed { step: Step::Program.into(), errno: 2 })),
        event(Event::Exited(Exited { signal: 9, out_of_memory: true, ..Exited::default() })),
    ]
}

/// Two full data frames on lane `Out` of channel 1: half a window, which earns a credit.
fn half_a_window() -> Vec<u8> {
    let frame = [&[1, 0, 0, 0, 0x22, 0, 0, 1][..], &[0; 0x1_0000]].concat();
    frame.repeat(2)
}

async fn assert_written(mut raw: DuplexStream, section: &str) {
    let expected = fixture(section);
    let mut written = vec![0; expected.len()];
    raw.read_exact(&mut written).await.unwrap();
    assert_eq!(written, expected);
}

#[tokio::test]
async fn the_asking_side_writes_the_fixture() {
    let (mut raw, connection, _incoming) = begin(Side::Asking);
    let mut channel = connection.open().unwrap();
    channel.messages.sender.send_message(&request()).await.unwrap();
    channel.input.sender.send(Bytes::from_static(b"hi\n")).await.unwrap();
    channel.input.sender.finish();
    for tell in told() {
        channel.messages.sender.send_message(&tell).await.unwrap();
    }
    raw.write_all(&half_a_window()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(channel.output.receiver.next().await.unwrap().unwrap().len(), 0x1_0000);
    }
    drop(channel.messages);
    drop(channel.output);
    drop(channel.error);
    drop(channel.handle);
    assert_written(raw, "asking").await;
}

#[tokio::test]
async fn the_asking_side_of_the_fixture_is_understood() {
    let (mut raw, _connection, mut incoming) = begin(Side::Answering);
    let bytes = fixture("asking");
    // Without its credit, which this side has not earned.
    let credit = [1, 0, 0, 0, 0x32, 4, 0, 0, 0, 0, 2, 0];
    let at = bytes.windows(credit.len()).position(|window| window == credit).unwrap();
    raw.write_all(&bytes[..at]).await.unwrap();
    raw.write_all(&bytes[at + credit.len()..]).await.unwrap();

    let mut channel = incoming.next().await.unwrap();
    assert_eq!(channel.messages.receiver.next_message().await, Ok(Some(request())));
    for tell in told() {
        assert_eq!(channel.messages.receiver.next_message().await, Ok(Some(tell)));
    }
    assert_eq!(channel.messages.receiver.next_message::<ExecInput>().await, Ok(None));
    assert_eq!(channel.input.receiver.next().await, Ok(Some(Bytes::from_static(b"hi\n"))));
    assert_eq!(channel.input.receiver.next().await, Ok(None));
    channel.handle.closed().await;
}

#[tokio::test]
async fn the_answering_side_writes_the_fixture() {
    let (mut raw, connection, mut incoming) = begin(Side::Answering);
    raw.write_all(&[1, 0, 0, 0, 0x10, 0, 0, 0]).await.unwrap();
    let mut channel = incoming.next().await.unwrap();
    let [started, rest @ ..] = events();
    channel.messages.sender.send_message(&started).await.unwrap();
    channel.output.sender.send(Bytes::from_static(b"ok")).await.unwrap();
    channel.error.sender.send(Bytes::from_static(b"no")).await.unwrap();
    for event in rest {
        channel.messages.sender.send_message(&event).await.unwrap();
    }
    drop(channel);
    let _second = connection.open().unwrap();
    assert_written(raw, "answering").await;
}

#[tokio::test]
async fn the_answering_side_of_the_fixture_is_understood() {
    let (mut raw, connection, mut incoming) = begin(Side::Asking);
    let mut channel = connection.open().unwrap();
    raw.write_all(&fixture("answering")).await.unwrap();
    for event in events() {
        assert_eq!(channel.messages.receiver.next_message().await, Ok(Some(event)));
    }
    assert_eq!(channel.messages.receiver.next_message::<ExecEvent>().await, Ok(None));
    assert_eq!(channel.output.receiver.next().await, Ok(Some(Bytes::from_static(b"ok"))));
    assert_eq!(channel.error.receiver.next().await, Ok(Some(Bytes::from_static(b"no"))));
    assert_eq!(channel.error.receiver.next().await, Ok(None));
    channel.handle.closed().await;
    assert!(incoming.next().await.is_some());
}
