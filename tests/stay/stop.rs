//! The end, asked for: everyone is told, and nobody is waited for longer than was said.

use std::time::{Duration, Instant};

use harness::callers;

use crate::home::Home;

callers!(who_listens_is_waited_for, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "trap 'sleep 0.3; echo bye > f; exit' TERM; echo ready; while :; do sleep 0.05; done";
    let number = home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout();
    let watching = home.begin(&["logs", "--follow", &id, number.trim()]);
    watching.wait_for("ready");
    // A stopped process hears it too.
    home.say(&["exec", "--detach", &id, "--", "sh", "-c", "kill -STOP $$"]).assert_success();
    home.say(&["stop", "--time", "20", &id]).assert_success();
    assert_eq!(std::fs::read_to_string(home.kept(&id).join("workspace/f")).unwrap(), "bye\n");
    let _ = watching.finish();
});

callers!(who_does_not_listen_is_killed, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let number = home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout();
    let watching = home.begin(&["logs", "--follow", &id, number.trim()]);
    watching.wait_for("ready");
    let begun = Instant::now();
    home.say(&["stop", "--time", "1", &id]).assert_success();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(home.entry(&id)["state"], "stopped");
    let _ = watching.finish();
});

callers!(an_attached_command_ends_with_its_sandbox, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let running = home.begin(&["exec", &id, "--", "sh", "-c", "echo ready; sleep 600"]);
    running.wait_for("ready");
    home.say(&["stop", &id]).assert_success();
    let finished = running.finish();
    assert!(finished.code == 143 || finished.code == 125, "{finished:?}");
});
