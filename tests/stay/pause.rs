//! Standing still, and other limits. Whether anything moves is seen in a file that a process inside writes to and the
//! host reads.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::{Caller, backend, callers, callers_apart, is_on, is_root, leaks_of, together};
use policy::Backend;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

/// Writes again and again, also from children that it makes.
const RESTLESS: &str = "while :; do (echo x >> pulse); sleep 0.01; done";

fn pulse(home: &Home, id: &str) -> u64 {
    fs::metadata(home.kept(id).join("workspace/pulse")).map_or(0, |file| file.len())
}

#[track_caller]
fn wait_for_pulse(home: &Home, id: &str) {
    let (before, deadline) = (pulse(home, id), Instant::now() + Duration::from_secs(20));
    while pulse(home, id) < before + 4 {
        assert!(Instant::now() < deadline, "nothing moves");
        sleep(Duration::from_millis(5));
    }
}

/// Nobody was told to wait for those that are stopped one by one, where no cgroup holds all at once.
#[track_caller]
fn wait_for_stillness(home: &Home, id: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let before = pulse(home, id);
        sleep(Duration::from_millis(300));
        if pulse(home, id) == before {
            return;
        }
        assert!(Instant::now() < deadline, "something moves");
    }
}

/// A sandbox in which something moves.
#[track_caller]
fn restless(home: &Home) -> String {
    let id = home.create(&[]);
    for _ in 0..3 {
        home.say(&["exec", "--detach", &id, "--", "sh", "-c", RESTLESS]).assert_success();
    }
    wait_for_pulse(home, &id);
    id
}

callers!(what_is_paused_stands_still, |caller| {
    let home = Home::new(caller);
    let id = restless(&home);
    home.say(&["pause", &id]).assert_success();
    assert_eq!(home.entry(&id)["state"], "paused");
    let before = pulse(&home, &id);
    sleep(Duration::from_millis(300));
    assert_eq!(pulse(&home, &id), before, "something moves");
    // Nothing new is begun; what was written can be read.
    for words in [&["exec", &id, "--", "true"][..], &["cp", &format!("{id}:/workspace/pulse"), "-"]] {
        let refused = home.say(words);
        assert!(refused.assert_refused().stderr().contains("agentbox resume"), "{refused:?}");
    }
    home.say(&["logs", &id]).assert_success();
    assert!(home.listed(&id).contains("pulse"));
    // Once more changes nothing.
    home.say(&["pause", &id]).assert_success();
    home.say(&["resume", &id]).assert_success();
    assert_eq!(home.entry(&id)["state"], "running");
    wait_for_pulse(&home, &id);
    home.say(&["resume", &id]).assert_success();
    assert_eq!(home.exec(&id, &["echo", "alive"]), "alive\n");
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    let of_kind = |kind: &str| record.matches(&format!("\"kind\":\"{kind}\"")).count();
    assert_eq!((of_kind("paused"), of_kind("resumed")), (2, 1), "{record}");
});

callers!(what_is_paused_can_be_ended, |caller| {
    let home = Home::new(caller);
    let id = restless(&home);
    home.say(&["pause", &id]).assert_success();
    home.say(&["stop", &id]).assert_success();
    assert_eq!(home.entry(&id)["state"], "stopped");
    home.say(&["pause", &id]).assert_refused();
    home.say(&["resume", &id]).assert_refused();
    home.say(&["start", &id]).assert_success();
    assert_eq!(home.entry(&id)["state"], "running");
    home.say(&["pause", &id]).assert_success();
    home.say(&["rm", "--force", &id]).assert_success();
    assert!(home.list().is_empty());
});

// Nothing inside would hear a signal, and whoever waits would wonder.
callers!(who_waits_for_a_command_is_told_of_a_pause_and_may_leave, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let running = home.begin(&["exec", &id, "--", "sh", "-c", "echo ready; exec sleep 613"]);
    running.wait_for("ready");
    home.say(&["pause", &id]).assert_success();
    running.wait_for_stderr(&format!("sandbox {id} is paused; `agentbox resume {id}` lets it go on\n"));
    running.signal(Signal::TERM);
    running.finish().assert_code(128 + 15);
    home.say(&["resume", &id]).assert_success();
    // Nobody waits for it any more.
    let deadline = Instant::now() + Duration::from_secs(20);
    while home.listed(&id).contains("sleep 613") {
        assert!(Instant::now() < deadline, "it goes on");
    }
});

// What stands still before init has said that a process runs is told to who waits for that. Where no cgroup holds it, init
// itself would have to stop the others.
#[test]
fn who_waits_for_a_start_is_told_of_a_pause() {
    if !is_root("pause what does not answer")
        || !is_on(&[Backend::Native], "another program is init's parent")
    {
        return;
    }
    let _turn = together();
    let home = Home::new(Caller::Root);
    let id = home.create(&[]);
    let init = home.status(&id)["init"].as_i64().unwrap().try_into().unwrap();
    let init = Pid::from_raw(init).unwrap();
    kill_process(init, Signal::STOP).unwrap();
    let asked = home.begin(&["exec", "--detach", &id, "--", "sleep", "613"]);
    // Before init is asked it would be refused; that it will be is on record.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !home.say(&["audit", "--json", &id]).assert_success().stdout().contains("613") {
        assert!(Instant::now() < deadline, "nobody asks: {}", asked.stderr());
    }
    home.say(&["pause", &id]).assert_success();
    asked.wait_for_stderr(&format!("sandbox {id} is paused; `agentbox resume {id}` lets it go on\n"));
    home.say(&["resume", &id]).assert_success();
    kill_process(init, Signal::CONT).unwrap();
    asked.finish().assert_success();
}

// What is frozen cannot die; whoever cleans up lets it.
callers_apart!(a_paused_sandbox_of_a_killed_keeper_goes_with_the_next_command, |caller| {
    let home = Home::new(caller);
    let before = leaks_of(caller);
    let id = restless(&home);
    home.say(&["pause", &id]).assert_success();
    let keeper = home.status(&id)["keeper"].as_i64().unwrap().try_into().unwrap();
    kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    home.say(&["wait", &id]).assert_success();
    assert_eq!(home.entry(&id)["reason"], "killed");
    home.say(&["rm", &id]).assert_success();
    before.assert_nothing_left();
});

callers!(limits_of_a_running_sandbox_change_or_that_is_refused, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--memory", "256M", "--cpus", "1"]);
    let limits = |field: &str| {
        let whole = home.say(&["inspect", &id]).assert_success().stdout();
        serde_json::from_str::<serde_json::Value>(&whole).unwrap()["spec"]["limits"][field].clone()
    };
    let hog = ["exec", &id, "--", "sh", "-c", "head -c 100M /dev/zero | tail -c 100M | wc -c"];
    assert_eq!(home.say(&hog).assert_success().stdout(), "104857600\n");
    let update = || home.say(&["update", &id, "--memory", "64M", "--cpus", "0.5"]);
    let mut updated = update();
    let deadline = Instant::now() + Duration::from_secs(30);
    // A kernel of the sandbox's own gives back what is not used any more when it gets to it.
    while backend().has_own_kernel() && updated.stderr().contains("of memory, more than that") {
        assert!(Instant::now() < deadline, "{updated:?}");
        updated = update();
    }
    if caller == Caller::Root {
        updated.assert_success();
        assert_ne!(home.say(&hog).stdout(), "104857600\n");
        assert!(home.say(&["audit", &id]).assert_success().stdout().contains("updated"));
        if home.entry(&id)["reason"] == "memory" {
            // A kernel of the sandbox's own may be what is killed, and all ends with it.
            assert!(harness::backend().has_own_kernel());
            home.say(&["start", &id]).assert_success();
        }
        // All or none: what is in use cannot be taken away, and then the rest stays, too.
        home.exec(&id, &["sh", "-c", "head -c 40M /dev/zero > /tmp/hoard"]);
        let refused = home.say(&["update", &id, "--memory", "16M", "--cpus", "2"]);
        assert!(refused.assert_refused().stderr().contains("memory"), "{refused:?}");
        assert_eq!(limits("cpus"), 500);
        assert_ne!(home.say(&hog).stdout(), "104857600\n");
    } else {
        // Nothing here has a cgroup to change.
        assert!(updated.assert_refused().stderr().contains("while it runs"), "{updated:?}");
        assert_eq!(limits("cpus"), 1000);
    }
    home.say(&["stop", &id]).assert_success();
    home.say(&["update", &id, "--memory", "128M", "--pids", "77", "--disk", "1G"]).assert_success();
    home.say(&["start", &id]).assert_success();
    assert_eq!(limits("pids"), 77);
    assert_eq!(limits("memory"), 128 << 20);
    home.say(&["update", &id]).assert_code(125);
    home.say(&["update", "nobody", "--pids", "7"]).assert_refused();
});

/// Waits until it stands still, and says why.
#[track_caller]
fn wait_for_pause(home: &Home, id: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let entry = home.entry(id);
        if entry["state"] == "paused" {
            return entry["problem"].as_str().unwrap_or_default().to_owned();
        }
        assert!(Instant::now() < deadline, "{entry}");
        sleep(Duration::from_millis(50));
    }
}

callers!(too_much_on_the_disk_pauses_it, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--disk", "16M"]);
    home.say(&["exec", "--detach", &id, "--", "sh", "-c", RESTLESS]).assert_success();
    // What is private has its own limit.
    assert_ne!(home.say(&["exec", &id, "--", "head", "-c", "20M", "/dev/zero"]).stdout.len(), 0);
    let full = home.say(&["exec", &id, "--", "sh", "-c", "head -c 20M /dev/zero > /tmp/f"]);
    assert!(full.stderr().contains("No space left"), "{full:?}");
    sleep(Duration::from_millis(1500));
    assert_eq!(home.entry(&id)["state"], "running");
    // By one call: what is paused halfway would go on later, and be too much again. Whoever asked for it may have to wait:
    // everything may stand still before init has said that it runs.
    let large = home.begin(&["exec", "--detach", &id, "--", "fallocate", "-l", "42M", "large"]);
    assert!(wait_for_pause(&home, &id).contains("--disk"));
    wait_for_stillness(&home, &id);
    // The owner lets it go on, and it does until there is a tenth more.
    home.say(&["resume", &id]).assert_success();
    large.finish().assert_success();
    wait_for_pulse(&home, &id);
    sleep(Duration::from_millis(1500));
    assert_eq!(home.entry(&id)["state"], "running");
    let larger = home.begin(&["exec", "--detach", &id, "--", "fallocate", "-l", "40M", "larger"]);
    assert!(wait_for_pause(&home, &id).contains("--disk"));
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert_eq!(record.matches(r#""kind":"limit","which":"disk""#).count(), 2, "{record}");
    home.say(&["rm", "--force", &id]).assert_success();
    let _ = larger.finish();
});

// A tree that cannot be looked into could hold anything.
callers!(what_cannot_be_watched_pauses_it, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "for i in $(seq 300); do mkdir d && cd d; done";
    let asked = home.begin(&["exec", "--detach", &id, "--", "sh", "-c", script]);
    wait_for_pause(&home, &id);
    home.say(&["rm", "--force", &id]).assert_success();
    let _ = asked.finish();
});
