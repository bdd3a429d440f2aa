//! How processes are brought to their end, and init itself.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::harness::{Init, PATIENCE, alone, command, event, exec, exited, failure, shell, tell, until};
use bytes::Bytes;
use rustix::process::{Signal, kill_process};
use tokio::time::{sleep, timeout};
use wire::{Event, Exec, Exited, Step, Tell};

/// Whether no process of such a command line is left soon: what was signalled still takes its time to go.
async fn disappears(init: &Init, pattern: &str) -> bool {
    for _ in 0..100 {
        if init.shell(&format!("pgrep -f '{pattern}'")).await.output.is_empty() {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn a_time_out_asks_first() {
    let init = Init::start();
    let asked = Exec {
        timeout_ms: 200,
        grace_ms: 20_000,
        ..shell("trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done")
    };
    let outcome = init.run(asked).await;
    assert_eq!(outcome.exited, Exited { code: 5, timed_out: true, ..Exited::default() });
    assert_eq!(outcome.text(), "bye\n");
}

#[tokio::test]
async fn a_time_out_then_kills_the_whole_group() {
    let init = Init::start();
    let begun = Instant::now();
    let asked = Exec {
        timeout_ms: 200,
        grace_ms: 300,
        ..shell("trap '' TERM; (sleep 777 & sleep 777); while :; do sleep 0.05; done")
    };
    let outcome = init.run(asked).await;
    assert_eq!(outcome.exited, Exited { signal: 9, timed_out: true, ..Exited::default() });
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(disappears(&init, "sleep 77[7]").await);
}

#[tokio::test]
async fn a_time_out_leaves_nothing_behind_when_only_the_leader_obeys() {
    let init = Init::start();
    let asked =
        Exec { timeout_ms: 300, grace_ms: 20_000, ..shell("(trap '' TERM; exec sleep 778) & exec sleep 20") };
    let outcome = init.run(asked).await;
    assert_eq!(outcome.exited, Exited { signal: 15, timed_out: true, ..Exited::default() });
    assert!(disappears(&init, "sleep 77[8]").await);
}

#[tokio::test]
async fn a_process_that_is_in_time_is_not_touched() {
    let init = Init::start();
    let asked = Exec { timeout_ms: u64::MAX, grace_ms: u64::MAX, ..shell("exit 4") };
    assert_eq!(init.run(asked).await.exited, Exited { code: 4, ..Exited::default() });
}

#[tokio::test]
async fn signals_reach_the_whole_group() {
    let init = Init::start();
    let (mut channel, _) = init.started(shell("sleep 779 & echo ready; wait")).await;
    until(&mut channel.output.receiver, "ready").await;
    for nonsense in [0, -9, 65, i32::MAX, i32::MIN] {
        tell(&mut channel, Tell::Signal(nonsense)).await;
    }
    tell(&mut channel, Tell::Signal(15)).await;
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited { signal: 15, ..Exited::default() });
    assert!(disappears(&init, "sleep 77[9]").await);
}

#[tokio::test]
async fn a_process_whose_client_is_gone_is_ended() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let witness = directory.path().join("witness");
    let script = format!(
        "trap 'echo told; echo told > {0}' TERM HUP; echo ready; while :; do sleep 0.05; done",
        witness.display()
    );
    let (mut channel, pid) = init.started(shell(&script)).await;
    until(&mut channel.output.receiver, "ready").await;
    drop(channel);
    sleep(Duration::from_millis(1000)).await;
    assert_eq!(std::fs::read(&witness).unwrap(), b"told\n");
    assert_eq!(init.shell(&format!("test -e /proc/{pid} && echo there")).await.text(), "there\n");
    sleep(Duration::from_millis(1500)).await;
    assert!(disappears(&init, "echo [t]old").await);
}

/// How many processes there are, zombies included, once no more than `expected` are left or it is hopeless.
async fn processes(init: &Init, expected: usize) -> usize {
    let mut count = usize::MAX;
    for _ in 0..100 {
        count = init.run(exec(&["ps", "-e", "--no-headers"])).await.text().lines().count();
        if count <= expected {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    count
}

/// Init itself and whoever counts.
const NOTHING_LEFT: usize = 2;

#[tokio::test]
async fn orphans_are_reaped() {
    let init = Init::start();
    init.shell("for i in 1 2 3 4 5 6 7 8; do (setsid sleep 0.1 &) ; done").await;
    assert_eq!(processes(&init, NOTHING_LEFT).await, NOTHING_LEFT);
}

#[tokio::test]
async fn no_more_than_256_run_at_once() {
    let init = Init::start();
    let mut channels = Vec::new();
    for _ in 0..256 {
        channels.push(init.started(exec(&["sleep", "100"])).await.0);
    }
    assert_eq!(init.refused(exec(&["true"])).await, (Step::Request, libc::EAGAIN));
    tell(&mut channels[0], Tell::Signal(9)).await;
    assert_eq!(exited(&mut channels[0].messages.receiver).await.signal, 9);
    // Its place is free once its channel is over.
    drop(channels.remove(0));
    for _ in 0..100 {
        let mut channel = init.begin(exec(&["true"])).await;
        match event(&mut channel).await {
            Event::Started(_) => return,
            refused => assert_eq!(failure(refused), (Step::Request, libc::EAGAIN)),
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("no place became free");
}

#[tokio::test]
async fn the_end_of_the_channel_is_the_end_of_everything() {
    let init = Init::start();
    let (mut channel, _) = init.started(shell("setsid sleep 3600 & echo ready; exec sleep 3600")).await;
    until(&mut channel.output.receiver, "ready").await;
    init.connection.shutdown();
    assert_eq!(init.ended().await.code(), Some(0));
}

#[tokio::test]
async fn garbage_ends_init_without_a_panic() {
    for garbage in [&b"GET / HTTP/1.1\r\nHost: init\r\n\r\n"[..], &[0xff; 64], &[0; 4096]] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let theirs = OwnedFd::from(theirs);
        let mut command = command(&["--landlock", "off"]);
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs).stderr(Stdio::piped());
        let process = command.spawn().unwrap();
        drop(command);
        ours.write_all(garbage).unwrap();
        let ended = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with("agentbox-init: the peer broke the protocol") && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[tokio::test]
async fn wrong_arguments_end_init() {
    for arguments in [&["--landlock"][..], &["--landlock", "perhaps"], &["extra"]] {
        let ended = alone(arguments);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
    }
}

#[tokio::test]
async fn two_pipes_serve_as_well_as_a_socket() {
    let mut command = command(&["--landlock", "off"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (write, read) = (process.stdin.take().unwrap().into(), process.stdout.take().unwrap().into());
    let (connection, _incoming) = wire::over_pipes(read, write, wire::Side::Asking).unwrap();
    let init = Init::from_parts(process, connection);
    let outcome = init.run_with(exec(&["cat"]), Bytes::from_static(b"through pipes")).await;
    assert_eq!(outcome.text(), "through pipes");
    init.connection.shutdown();
    assert_eq!(init.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_client_that_goes_at_once_leaves_nothing_behind() {
    let init = Init::start();
    for _ in 0..50 {
        drop(init.begin(shell("trap '' HUP TERM; while :; do sleep 0.05; done")).await);
    }
    assert_eq!(processes(&init, NOTHING_LEFT).await, NOTHING_LEFT);
}

#[tokio::test]
async fn whoever_leaves_as_a_process_starts_leaves_nobody() {
    let init = Init::start();
    init.shell("true").await;
    for _ in 0..30 {
        let before = init.children();
        let channel = init.begin(exec(&["sleep", "100"])).await;
        // Its start and the end of its client come to init at once.
        while init.children().iter().all(|child| before.contains(child)) {
            tokio::task::yield_now().await;
        }
        kill_process(init.pid(), Signal::STOP).unwrap();
        drop(channel);
        sleep(Duration::from_millis(5)).await;
        kill_process(init.pid(), Signal::CONT).unwrap();
    }
    let deadline = Instant::now() + PATIENCE;
    while !init.children().is_empty() {
        assert!(Instant::now() < deadline, "{:?} are left", init.children());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_signal_from_inside_hides_no_end() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    // To init's first thread alone, while that of the kernel waits, too.
    let told = "import ctypes; ctypes.CDLL(None).syscall(234, 1, 1, 17)";
    let script = format!("until [ -e {} ]; do sleep 0.01; done; python3 -c '{told}'; exit 3", go.display());
    let (mut channel, _) = init.started(shell(&script)).await;
    kill_process(init.pid(), Signal::STOP).unwrap();
    std::fs::write(&go, "").unwrap();
    sleep(Duration::from_secs(1)).await;
    kill_process(init.pid(), Signal::CONT).unwrap();
    assert_eq!(exited(&mut channel.messages.receiver).await.code, 3);
    for _ in 0..3 {
        assert_eq!(timeout(Duration::from_secs(10), init.shell("echo on")).await.unwrap().text(), "on\n");
    }
}
