//! How a record ends: with the end of its sandbox, whoever was killed; with a head that is told; and one day altogether.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use harness::callers;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::Home;

/// All that is on record: kind by kind, without anybody having cleaned up by another command.
#[track_caller]
fn events(home: &Home, id: &str) -> Vec<Value> {
    let said = home.say(&["audit", "--json", id]).assert_success().stdout();
    said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take()).collect()
}

#[track_caller]
fn count(home: &Home, id: &str, which: &str) -> usize {
    let events = events(home, id);
    events.iter().filter(|event| event["kind"] == "limit" && event["which"] == which).count()
}

callers!(whoever_was_killed_is_on_record_once, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    for victim in ["keeper", "supervisor", "init"] {
        home.say(&["exec", "--detach", &id, "--", "sleep", "600"]).assert_success();
        let pid = home.status(&id)[victim].as_i64().unwrap().try_into().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        home.say(&["wait", &id]).assert_success();
        for _ in 0..2 {
            let last = events(&home, &id).pop().unwrap();
            match victim {
                "init" => assert_eq!((&last["kind"], &last["reason"]), (&"stopped".into(), &"failed".into())),
                _ => assert_eq!((&last["kind"], &last["process"]), (&"lost".into(), &victim.into())),
            }
        }
        home.say(&["start", &id]).assert_success();
    }
    let lost = events(&home, &id).iter().filter(|event| event["kind"] == "lost").count();
    assert_eq!(lost, 2);
    home.say(&["rm", "--force", &id]).assert_success();
    assert_eq!(events(&home, &id).pop().unwrap()["kind"], "removed");
    home.say(&["audit", "--verify", &id]).assert_success();
});

callers!(a_record_that_nobody_ended_is_gone_on_with, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.say(&["stop", &id]).assert_success();
    // As though the machine had lost its power while it ran: nothing is left to be cleaned up.
    let path = home.state().join("audit").join(format!("{id}.jsonl"));
    let before = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = before.lines().collect();
    fs::write(&path, format!("{}\n", lines[..lines.len() - 1].join("\n"))).unwrap();
    home.say(&["start", &id]).assert_success();
    let kinds: Vec<_> = events(&home, &id).iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds, ["created", "started", "lost", "started"]);
    home.say(&["audit", "--verify", &id]).assert_success();
});

callers!(those_that_are_told_to_end_are_on_record_before_the_end, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    for _ in 0..4 {
        home.say(&["exec", "--detach", &id, "--", "sleep", "600"]).assert_success();
        // Why one was killed is asked of the keeper, which takes longer than to be told that all have ended.
        let deaf = "trap '' TERM; echo deaf; sleep 600";
        let number = home.say(&["exec", "--detach", &id, "--", "bash", "-c", deaf]).assert_success().stdout();
        while home.say(&["logs", &id, number.trim()]).assert_success().stdout() != "deaf\n" {}
    }
    home.say(&["stop", "--time", "1", &id]).assert_success();
    let events = events(&home, &id);
    assert_eq!(events.iter().filter(|event| event["kind"] == "exited").count(), 8, "{events:?}");
    assert_eq!(events.last().unwrap()["kind"], "stopped");
});

callers!(the_head_is_told_at_the_end, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["true"]);
    let inspected: Value =
        serde_json::from_slice(&home.say(&["inspect", &id]).assert_success().stdout).unwrap();
    assert_eq!(inspected["record"]["entries"], 4, "{inspected}");
    let mut heads = vec![inspected["record"]["head"].as_str().unwrap().to_owned()];
    for words in [&["stop", "--json", &id][..], &["wait", "--json", &id], &["rm", "--json", &id]] {
        let said = home.say(words);
        let told: Value = serde_json::from_slice(&said.assert_success().stdout).unwrap();
        assert_eq!((&told["id"], said.stderr()), (&id.as_str().into(), String::new()));
        heads.push(told["record"]["head"].as_str().unwrap().to_owned());
    }
    assert_eq!(heads[1], heads[2]);
    assert!(heads[0] != heads[1] && heads[2] != heads[3]);
    for head in &heads {
        home.say(&["audit", "--verify", "--head", head, &id]).assert_success();
    }
    let other = format!("sha256:{}", "0".repeat(63) + "1");
    home.say(&["audit", "--verify", "--head", &other, &id]).assert_refused();
});

callers!(a_person_is_told_the_head_and_a_script_is_not, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let said = home.say(&["stop", &id]);
    assert_eq!((said.assert_success().stdout(), said.stderr()), (format!("{id}\n"), String::new()));
    let pty = home.pty(&["rm", &id]);
    pty.wait_for("record: 4 entries, head sha256:");
    // A run is not noisy, unless it is asked.
    let plain = home.say(&["run", "--", "true"]);
    assert!(!plain.assert_success().stderr().contains("record:"), "{}", plain.stderr());
    let reported = home.say(&["run", "--report", "--", "true"]);
    let line = "record: 5 entries, head sha256:";
    assert!(reported.assert_success().stderr().contains(line), "{}", reported.stderr());
});

callers!(limits_are_on_record_and_not_without_end, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--pids", "32", "--memory", "64M"]);
    home.say(&["exec", "--timeout", "1s", &id, "--", "sleep", "600"]).assert_code(124);
    assert_eq!(count(&home, &id, "time"), 1);

    let report: Value = serde_json::from_slice(&home.say(&["inspect", &id]).stdout).unwrap();
    let given = |wall: &str| {
        let walls = report["report"].as_array().unwrap();
        walls.iter().any(|line| line["wall"] == wall && line["state"] == "given")
    };
    // Far more refusals than records. What the kernel does not count, nobody is told.
    let bomb = "for i in $(seq 200); do sleep 5 & done 2>/dev/null; exit 3";
    home.say(&["exec", &id, "--", "bash", "-c", bomb]);
    // What a kernel of the sandbox's own refuses, the host's does not count.
    let counts = harness::is_on(harness::HOST_KERNEL, "refused processes are on no record");
    let expected = usize::from(given("pids-limit") && counts);
    let counted = count(&home, &id, "pids");
    assert!((expected..=4 * expected.max(1)).contains(&counted), "{counted} of {expected}");
    if given("memory-limit") {
        std::thread::sleep(Duration::from_secs(6));
        home.say(&["exec", &id, "--", "python3", "-c", "x = bytearray(1 << 30)"]).assert_code(137);
        assert_eq!(count(&home, &id, "memory"), 1);
        if home.entry(&id)["reason"] == "memory" {
            // A kernel of the sandbox's own may be what is killed, and all ends with it.
            assert!(harness::backend().has_own_kernel());
            home.say(&["start", &id]).assert_success();
        }
    }
    home.say(&["stop", "--time", "0", &id]).assert_success();
    home.say(&["audit", "--verify", &id]).assert_success();
});

callers!(records_expire_once_a_day_without_being_asked_to, |caller| {
    let home = Home::new(caller);
    home.say(&["run", "--", "true"]).assert_success();
    let audit = home.state().join("audit");
    let logs = || fs::read_dir(&audit).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let old = logs().pop().unwrap();
    // Its records say so, too.
    let text = fs::read_to_string(&old).unwrap();
    let year = text.split_once("\"time\":\"").unwrap().1[..4].to_owned();
    fs::write(&old, text.replace(&format!("\"time\":\"{year}"), "\"time\":\"2001")).unwrap();
    // What cannot be removed does not keep the others.
    fs::create_dir(audit.join("000000000000.jsonl")).unwrap();
    let date = |path: &std::path::Path, days: u64| {
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
    };
    date(&old, 31);
    // It was looked at a moment ago.
    home.say(&["ls"]).assert_success();
    assert!(old.exists());
    date(&home.state().join("expired"), 2);
    home.say(&["ls"]).assert_success();
    assert!(!old.exists());
    assert_eq!(logs().len(), 1);
});
