//! What is on record: complete, in order, out of the agent's reach, and there when the sandbox is gone.

use std::fs;
use std::time::{Duration, Instant};

use harness::callers;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

#[track_caller]
fn kinds(home: &Home, id: &str) -> Vec<String> {
    let said = home.say(&["audit", "--json", id]).assert_success().stdout();
    let records = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    records.map(|record| record["event"]["kind"].as_str().unwrap().to_owned()).collect()
}

callers!(everything_is_on_record_and_outlives_the_sandbox, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--name", "recorded"]);
    home.say(&["exec", "recorded", "--", "sh", "-c", "exit 4"]).assert_code(4);
    home.say(&["exec", "recorded", "--", "no-such-program"]).assert_code(127);
    home.say(&["cp", "/etc/hostname", "recorded:/tmp"]).assert_success();
    home.say(&["stop", "recorded"]).assert_success();
    home.say(&["start", "recorded"]).assert_success();
    home.say(&["rm", "--force", "recorded"]).assert_success();
    let expected = [
        "created", "started", "exec", "exited", "exec", "failed", "file", "stopped", "started", "stopped",
        "removed",
    ];
    assert_eq!(kinds(&home, &id), expected);
    let text = home.say(&["audit", &id]).assert_success().stdout();
    assert!(text.contains("sh -c \"exit 4\"") && text.contains("code 4"), "{text}");
    let verified = home.say(&["audit", "--verify", &id]).assert_success().stdout();
    let head = verified.trim().rsplit_once(' ').unwrap().1;
    home.say(&["audit", "--verify", "--head", head, &id]).assert_success();
    // Nobody but the owner may look at it.
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(home.state().join("audit").join(format!("{id}.jsonl"))).unwrap();
    assert_eq!((metadata.mode() & 0o077, metadata.uid()), (0, caller.uid()));
});

callers!(what_was_changed_is_found, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["echo", "innocent"]);
    home.say(&["stop", &id]).assert_success();
    let path = home.state().join("audit").join(format!("{id}.jsonl"));
    let before = fs::read_to_string(&path).unwrap();
    let head = home.say(&["audit", "--verify", &id]).assert_success().stdout();
    let head = head.trim().rsplit_once(' ').unwrap().1;

    fs::write(&path, before.replace("innocent", "harmless")).unwrap();
    let said = home.say(&["audit", "--verify", &id]);
    assert!(said.assert_refused().stderr().contains("was changed"), "{}", said.stderr());
    // That the end was cut off shows only to whoever kept the head.
    let lines: Vec<&str> = before.lines().collect();
    fs::write(&path, format!("{}\n", lines[..lines.len() - 1].join("\n"))).unwrap();
    home.say(&["audit", "--verify", &id]).assert_success();
    home.say(&["audit", "--verify", "--head", head, &id]).assert_refused();
    fs::write(&path, before).unwrap();
    home.say(&["audit", "--verify", "--head", head, &id]).assert_success();
});

callers!(what_an_agent_writes_is_inert_when_shown, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let hostile = "\u{1b}]52;c;aGk=\u{7}\u{1b}[6n\u{9b}2J\u{202e}gpj.exe\n{\"seq\":1}";
    home.say(&["exec", &id, "--", "true", hostile]).assert_success();
    home.say(&["exec", "--detach", &id, "--", "sh", "-c", "sleep 100", hostile]).assert_success();
    for words in [&["audit", &id][..], &["audit", "--json", &id], &["ls", "--all"], &["inspect", &id]] {
        let said = home.say(words).assert_success().stdout();
        let acts = |letter: char| {
            (letter.is_control() && letter != '\n')
                || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!said.contains(acts), "{words:?}: {said:?}");
    }
    home.say(&["audit", "--verify", &id]).assert_success();
});

callers!(whoever_is_killed_the_record_goes_on, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    for victim in ["supervisor", "keeper", "init"] {
        home.exec(&id, &["true"]);
        let pid = home.status(&id)[victim].as_i64().unwrap().try_into().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        home.say(&["wait", &id]).assert_success();
        home.say(&["audit", "--verify", &id]).assert_success();
        home.say(&["start", &id]).assert_success();
    }
    home.say(&["audit", "--verify", &id]).assert_success();
    assert_eq!(kinds(&home, &id).iter().filter(|kind| *kind == "started").count(), 4);
});

callers!(an_attached_run_is_on_record_too, |caller| {
    let home = Home::new(caller);
    home.say(&["run", "--", "true"]).assert_success();
    let logs: Vec<_> = fs::read_dir(home.state().join("audit")).unwrap().flatten().collect();
    assert_eq!(logs.len(), 1);
    let name = logs[0].file_name().into_string().unwrap();
    let id = name.strip_suffix(".jsonl").unwrap();
    assert_eq!(kinds(&home, id), ["created", "started", "exec", "exited", "stopped"]);
    // It goes when it is old enough, and not before.
    home.say(&["gc"]).assert_success();
    assert_eq!(kinds(&home, id).len(), 5);
    assert_eq!(home.say(&["gc", "--audit-days", "0"]).assert_success().stdout().trim(), id);
    home.say(&["audit", id]).assert_refused();
});

callers!(nothing_is_started_of_which_there_is_no_record, |caller| {
    if !harness::is_root("only root can give the state a small disk of its own") {
        return;
    }
    let home = Home::new(caller);
    let _disk = home.small_disk();
    let id = home.create(&[]);
    home.exec(&id, &["true"]);
    // Full to the last byte.
    let filler = home.state().join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    use std::io::Write as _;
    while file.write_all(&[0; 512]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
    // The page that the log ends in may still have room for a few.
    let mut said = home.say(&["exec", &id, "--", "true"]);
    for _ in 0..64 {
        if said.code == 0 {
            said = home.say(&["exec", &id, "--", "true"]);
        }
    }
    assert!(said.assert_refused().stderr().contains("no room for its record"), "{}", said.stderr());
    drop(file);
    fs::remove_file(&filler).unwrap();
    // A process that another test is about to start may hold the file for a moment more.
    let deadline = Instant::now() + Duration::from_secs(10);
    while home.say(&["exec", &id, "--", "true"]).code != 0 {
        assert!(Instant::now() < deadline, "there is room, and nothing can be started");
    }
    home.say(&["audit", "--verify", &id]).assert_success();
    // The disk goes before its home does, which would not find the sandbox any more.
    home.say(&["rm", "--force", &id]).assert_success();
});
