//! Processes on a terminal.

use crate::harness::{Init, everything, exited, tell, terminal, until};
use bytes::Bytes;
use wire::{Exited, Tell, WindowSize};

#[tokio::test]
async fn a_terminal_has_the_size_asked_for_and_follows_it() {
    let init = Init::start();
    let script = "stty size; trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.05; done";
    let (mut channel, _) = init.started(terminal(script, 31, 97)).await;
    assert_eq!(until(&mut channel.output.receiver, "ready").await.lines().next(), Some("31 97"));
    tell(&mut channel, Tell::Resize(WindowSize { rows: 50, columns: 1_000_000 })).await;
    until(&mut channel.output.receiver, "50 65535").await;
    assert_eq!(exited(&mut channel.messages.receiver).await.code, 7);
}

#[tokio::test]
async fn all_three_streams_are_one_terminal() {
    let init = Init::start();
    let script = "test -t 0 && test -t 1 && test -t 2 && tty && echo err >&2 && stty -a | grep -o ' iutf8'";
    let (mut channel, _) = init.started(terminal(script, 24, 80)).await;
    let output = everything(&mut channel.output.receiver).await;
    let text = String::from_utf8_lossy(&output);
    assert!(
        text.contains("/dev/pts/") && text.contains("err\r\n") && text.ends_with(" iutf8\r\n"),
        "{text:?}"
    );
    assert!(everything(&mut channel.error.receiver).await.is_empty());
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn a_terminal_is_the_controlling_one() {
    let init = Init::start();
    let (mut channel, _) = init.started(terminal("exec cat", 24, 80)).await;
    // Once from the terminal's echo and once from the program, which then is there to be interrupted.
    channel.input.sender.send(Bytes::from_static(b"x\n")).await.unwrap();
    until(&mut channel.output.receiver, "x\r\nx\r\n").await;
    channel.input.sender.send(Bytes::from_static(b"\x03")).await.unwrap();
    assert_eq!(exited(&mut channel.messages.receiver).await.signal, 2);
}

#[tokio::test]
async fn lines_go_in_and_out() {
    let init = Init::start();
    let (mut channel, _) = init.started(terminal("read line; echo \"got $line\"; cat", 24, 80)).await;
    channel.input.sender.send(Bytes::from_static(b"hello\n")).await.unwrap();
    until(&mut channel.output.receiver, "got hello").await;
    channel.input.sender.send(Bytes::from_static(b"more\n\x04")).await.unwrap();
    until(&mut channel.output.receiver, "more").await;
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn the_last_words_on_a_terminal_are_not_lost() {
    let init = Init::start();
    for _ in 0..20 {
        let (mut channel, _) = init.started(terminal("seq 1 5000; printf 'the end'", 24, 80)).await;
        let output = everything(&mut channel.output.receiver).await;
        assert!(
            output.starts_with(b"1\r\n2\r\n") && output.ends_with(b"5000\r\nthe end"),
            "{}",
            output.len()
        );
    }
}

#[tokio::test]
async fn something_in_the_background_of_a_terminal_does_not_hold_it_up() {
    let init = Init::start();
    let script = "trap '' HUP; sleep 20 & echo hi";
    let (mut channel, _) = init.started(terminal(script, 24, 80)).await;
    assert_eq!(&everything(&mut channel.output.receiver).await[..], b"hi\r\n");
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}
