//! Bytes in and out: none lost, none changed, none read before the client wants them.

use std::time::{Duration, Instant};

use crate::harness::{Init, event, everything, exec, exited, noise, shell, until};
use bytes::Bytes;
use tokio::time::sleep;
use wire::{Event, Exited};

const MEBIBYTE: usize = 1024 * 1024;

#[tokio::test]
async fn ten_mebibytes_come_back_as_they_went() {
    let sent = noise(10 * MEBIBYTE);
    let outcome = Init::start().run_with(exec(&["cat"]), sent.clone()).await;
    assert!(outcome.output == sent, "{} bytes came back", outcome.output.len());
    assert_eq!(outcome.exited, Exited::default());
}

#[tokio::test]
async fn a_slow_client_slows_the_process_and_loses_nothing() {
    let init = Init::start();
    let (mut channel, _) = init.started(shell("head -c 8M /dev/zero; echo written >&2; printf end")).await;
    sleep(Duration::from_millis(300)).await;
    // Another exec is not held up by it.
    assert_eq!(init.shell("echo free").await.text(), "free\n");
    let mut count = 0;
    let mut last = Bytes::new();
    while let Some(bytes) = channel.output.receiver.next().await.unwrap() {
        if count < MEBIBYTE {
            sleep(Duration::from_millis(20)).await;
        }
        count += bytes.len();
        last = bytes;
    }
    assert_eq!(count, 8 * MEBIBYTE + 3);
    assert!(last.ends_with(b"end"));
    assert_eq!(&everything(&mut channel.error.receiver).await[..], b"written\n");
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn a_process_is_not_read_faster_than_its_client_reads() {
    let init = Init::start();
    let (mut channel, _) = init.started(shell("head -c 8M /dev/zero; echo written >&2")).await;
    let early = tokio::time::timeout(Duration::from_millis(500), channel.error.receiver.next()).await;
    assert!(early.is_err(), "it must not have got rid of its output");
    assert_eq!(everything(&mut channel.output.receiver).await.len(), 8 * MEBIBYTE);
    assert_eq!(&everything(&mut channel.error.receiver).await[..], b"written\n");
}

#[tokio::test]
async fn what_was_written_before_the_end_is_read_however_late() {
    let init = Init::start();
    // From less than a lane takes unread to more than lane and pipe together: at some of these sizes the process
    // has ended, and the wait for its output too, while a part of it is still in the pipe.
    let mut channels = Vec::new();
    for size in (200..900).step_by(50) {
        let script = format!("head -c {size}k /dev/zero; sleep 3 & exit 3");
        channels.push((size, init.started(shell(&script)).await.0));
    }
    sleep(Duration::from_millis(700)).await;
    for (size, mut channel) in channels {
        assert_eq!(everything(&mut channel.output.receiver).await.len(), size * 1024);
        assert_eq!(exited(&mut channel.messages.receiver).await.code, 3);
    }
}

#[tokio::test]
async fn the_end_of_an_output_does_not_wait_for_the_process() {
    let init = Init::start();
    let (mut channel, _) = init.started(shell("echo all; exec >&-; read word; echo $word >&2")).await;
    assert_eq!(&everything(&mut channel.output.receiver).await[..], b"all\n");
    channel.input.sender.send(Bytes::from_static(b"heard\n")).await.unwrap();
    assert_eq!(&everything(&mut channel.error.receiver).await[..], b"heard\n");
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn a_process_that_does_not_read_its_input_stalls_nobody() {
    let init = Init::start();
    let outcome = init.run_with(shell("exec 0<&-; sleep 0.2; echo done"), noise(5 * MEBIBYTE)).await;
    assert_eq!(outcome.text(), "done\n");
    let outcome = init.run_with(exec(&["true"]), noise(5 * MEBIBYTE)).await;
    assert_eq!(outcome.exited, Exited::default());
}

#[tokio::test]
async fn the_end_of_the_input_lane_is_the_end_of_stdin() {
    let init = Init::start();
    let (mut channel, _) = init.started(exec(&["cat"])).await;
    channel.input.sender.send(Bytes::from_static(b"one\n")).await.unwrap();
    until(&mut channel.output.receiver, "one\n").await;
    channel.input.sender.finish();
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
}

#[tokio::test]
async fn something_in_the_background_does_not_hold_an_exec_up() {
    let init = Init::start();
    let begun = Instant::now();
    let outcome = init.shell("sleep 20 & echo hi").await;
    assert_eq!(outcome.text(), "hi\n");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn something_in_the_background_that_writes_without_pause_does_not_hold_it_up_either() {
    let init = Init::start();
    let outcome = init.shell("yes & echo first >&2; exit 0").await;
    assert_eq!((outcome.exited, &outcome.error[..]), (Exited::default(), &b"first\n"[..]));
}

#[tokio::test]
async fn something_in_the_background_may_go_on_writing() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let witness = directory.path().join("witness");
    let script = format!(
        "(sleep 0.5; head -c 1M /dev/zero && echo hi && echo hi >&2 && echo wrote > {0}) & echo begun",
        witness.display()
    );
    assert_eq!(init.shell(&script).await.text(), "begun\n");
    for _ in 0..300 {
        if std::fs::read(&witness).is_ok_and(|text| text == b"wrote\n") {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it died of a closed pipe");
}

#[tokio::test]
async fn streams_can_be_opened_again_by_name() {
    let init = Init::start();
    let script = "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin; cat < /proc/self/fd/0";
    let outcome = init.run_with(shell(script), Bytes::from_static(b"in")).await;
    assert_eq!((&outcome.output[..], &outcome.error[..]), (&b"out\nin"[..], &b"err\n"[..]));
}

#[tokio::test]
async fn many_at_once_do_not_mix() {
    let init = Init::start();
    let mut channels = Vec::new();
    for number in 0..50 {
        channels.push(init.begin(shell(&format!("yes {number} | head -c 200k"))).await);
    }
    for (number, mut channel) in channels.into_iter().enumerate() {
        assert!(matches!(event(&mut channel).await, Event::Started(_)));
        let output = everything(&mut channel.output.receiver).await;
        let expected: Vec<u8> = format!("{number}\n").bytes().cycle().take(200 * 1024).collect();
        assert!(output == expected, "{number}");
        assert_eq!(exited(&mut channel.messages.receiver).await, Exited::default());
    }
}
