//! Sandboxes that end although nobody asked for it: their time is up, or nobody uses them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::callers;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

/// Waits for the end and tells why it came.
#[track_caller]
fn reason_of_end(home: &Home, id: &str) -> String {
    home.say(&["wait", id]).assert_success();
    let entry = home.entry(id);
    assert_eq!(entry["state"], "stopped", "{entry}");
    entry["reason"].as_str().unwrap().to_owned()
}

callers!(a_life_time_ends_a_sandbox_with_good_grace, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--lifetime", "1500ms"]);
    let script = "trap 'echo bye > f; exit' TERM; while :; do sleep 0.05; done";
    home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success();
    assert_eq!(reason_of_end(&home, &id), "expired");
    assert_eq!(std::fs::read_to_string(home.kept(&id).join("workspace/f")).unwrap(), "bye\n");
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert!(record.contains(r#""kind":"limit","which":"time""#), "{record}");
    assert!(record.contains(r#""kind":"stopped","reason":"time""#), "{record}");
    // It may live once more.
    home.say(&["start", &id]).assert_success();
    assert_eq!(reason_of_end(&home, &id), "expired");
});

callers!(a_life_time_ends_a_plain_run_and_what_does_not_listen, |caller| {
    let home = Home::new(caller);
    let begun = Instant::now();
    let run = home.say(&[
        "run",
        "--lifetime",
        "1s",
        "--",
        "sh",
        "-c",
        "trap exit TERM; while :; do sleep 0.05; done",
    ]);
    run.assert_code(124);
    assert!(run.stderr().contains("its time was up"), "{run:?}");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    // Standing still does not help, and nobody has to come to end it.
    let id = home.create(&["--lifetime", "1s"]);
    home.say(&["exec", "--detach", &id, "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
        .assert_success();
    home.say(&["pause", &id]).assert_success();
    assert_eq!(reason_of_end(&home, &id), "expired");
});

// The keeper holds the time, too, for a supervisor that does not.
callers!(a_life_time_ends_what_has_a_supervisor_that_does_nothing, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--lifetime", "4s"]);
    let supervisor = home.status(&id)["supervisor"].as_i64().unwrap().try_into().unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    assert_eq!(reason_of_end(&home, &id), "expired");
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert!(record.lines().last().unwrap().contains(r#""kind":"stopped","reason":"time""#), "{record}");
    home.say(&["audit", "--verify", &id]).assert_success();
});

callers!(whom_nobody_uses_is_ended, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--idle-timeout", "1s"]);
    assert_eq!(reason_of_end(&home, &id), "idle");
    // What an exec left behind, and a shell that waits, are no use.
    home.say(&["start", &id]).assert_success();
    home.exec(&id, &["sh", "-c", "sleep 1000 & exit"]);
    home.say(&["exec", "--detach", "--tty", &id, "--", "sh"]).assert_success();
    assert_eq!(reason_of_end(&home, &id), "idle");
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert_eq!(record.matches(r#""kind":"stopped","reason":"idle""#).count(), 2, "{record}");
});

callers!(whoever_is_used_goes_on, |caller| {
    let home = Home::new(caller);
    let uses: [(&str, &[&str]); 4] = [
        ("a process", &["exec", "--detach", "ID", "--", "sleep", "4"]),
        (
            "a terminal",
            &[
                "exec",
                "--detach",
                "--tty",
                "ID",
                "--",
                "sh",
                "-c",
                "for i in $(seq 40); do echo $i; sleep 0.1; done",
            ],
        ),
        ("a client", &["exec", "ID", "--", "sleep", "4"]),
        ("a pause", &["pause", "ID"]),
    ];
    let begun: Vec<_> = uses
        .iter()
        .map(|(what, words)| {
            let id = home.create(&["--idle-timeout", "1s"]);
            let words: Vec<&str> =
                words.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
            let running = home.begin(&words);
            (what, id.clone(), running)
        })
        .collect();
    sleep(Duration::from_millis(2500));
    for (what, id, _) in &begun {
        assert_ne!(home.entry(id)["state"], "stopped", "although there is {what}");
    }
    for (what, id, running) in begun {
        running.finish().assert_success();
        if what.contains("pause") {
            home.say(&["resume", &id]).assert_success();
        }
        assert_eq!(reason_of_end(&home, &id), "idle", "after {what}");
    }
});
