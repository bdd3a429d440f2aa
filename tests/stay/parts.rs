//! A record that is longer than one file: it goes on in the next part while its sandbox runs, up to its last.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use audit::{Arguments, Event, Head, PART_LIMIT, PARTS_LIMIT, Part, Text, Writer};
use harness::{Caller, callers};
use policy::{SandboxId, User};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

fn part(home: &Home, id: &str, part: Part) -> PathBuf {
    home.state().join("audit").join(part.file_name(&id.parse().unwrap()))
}

/// Puts much on record by ordinary means, until the file of this name is there and the part after it is written to:
/// what is recorded between the two still goes to the old one.
#[track_caller]
fn fill(home: &Home, id: &str, until: Part) {
    let argument = "x".repeat(60 << 10);
    let (until, newest) = (part(home, id, until), part(home, id, Part::Newest));
    for _ in 0..2 * PART_LIMIT / (48 << 10) {
        home.say(&["exec", "--detach", id, "--", "true", &argument]).assert_success();
        if until.exists() && fs::metadata(&newest).is_ok_and(|newest| newest.len() > 0) {
            return;
        }
    }
    panic!("{} is not there after so much", until.display());
}

/// Puts records into a sandbox's log that has ended, as its supervisor would have.
fn write(home: &Home, id: &str, work: impl FnOnce(&PathBuf, &SandboxId, &mut Writer)) {
    let (directory, id) = (home.state().join("audit"), id.parse().unwrap());
    let head = Head::read(&directory, &id).unwrap();
    let mut writer = Writer::new(audit::open(&directory, &id).unwrap(), head).unwrap();
    work(&directory, &id, &mut writer);
}

fn large() -> Event {
    let (argv, cwd) = (Arguments::new(["x".repeat(60 << 10)]), Text::new("/"));
    Event::Exec { exec: 1, argv, cwd, user: User::AGENT, terminal: None, detached: false }
}

fn fill_part(writer: &mut Writer) {
    while !writer.is_full() {
        writer.append(SystemTime::now(), &large()).unwrap();
    }
}

#[track_caller]
fn verified(home: &Home, id: &str) -> u64 {
    let said = home.say(&["audit", "--verify", id]).assert_success().stdout();
    said.split_once(' ').unwrap().0.parse().unwrap()
}

callers!(a_full_part_is_followed_by_another, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let mut following = home.begin(&["audit", "--follow", &id]);
    fill(&home, &id, Part::Numbered(1));
    let first = fs::metadata(part(&home, &id, Part::Numbered(1))).unwrap().len();
    assert!((PART_LIMIT..PART_LIMIT + (1 << 20)).contains(&first), "{first}");
    home.exec(&id, &["echo", "in the second part"]);
    following.wait_for("in the second part");
    assert!(!following.has_ended());
    following.signal(Signal::KILL);
    let _ = following.finish();
    let newest = fs::read_to_string(part(&home, &id, Part::Newest)).unwrap();
    assert!(newest.contains("in the second part"), "it went on in the old part");
    home.say(&["stop", &id]).assert_success();
    home.say(&["start", &id]).assert_success();
    home.exec(&id, &["true"]);
    let count = verified(&home, &id);
    let said = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert_eq!(said.lines().count() as u64, count);
    // Both parts are the owner's alone.
    use std::os::unix::fs::MetadataExt as _;
    for each in [Part::Numbered(1), Part::Newest] {
        let metadata = fs::metadata(part(&home, &id, each)).unwrap();
        assert_eq!((metadata.mode() & 0o077, metadata.uid()), (0, caller.uid()));
    }
});

callers!(a_record_that_is_full_keeps_anything_from_starting, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.say(&["stop", &id]).assert_success();
    write(&home, &id, |directory, id, writer| {
        for _ in 1..PARTS_LIMIT {
            writer.go_on(audit::begin_part(directory, id).unwrap()).unwrap();
            writer.append(SystemTime::now(), &large()).unwrap();
        }
        fill_part(writer);
    });
    give_back(&home, &id, caller);
    home.say(&["start", &id]).assert_success();
    // It is asked for once more, and then known.
    let mut said = home.say(&["exec", &id, "--", "true"]);
    for _ in 0..8 {
        if said.code == 0 {
            said = home.say(&["exec", &id, "--", "true"]);
        }
    }
    assert!(said.assert_refused().stderr().contains("is full"), "{}", said.stderr());
    assert!(!part(&home, &id, Part::Numbered(PARTS_LIMIT as u64)).exists());
    home.say(&["stop", &id]).assert_success();
    verified(&home, &id);
});

callers!(a_part_that_cannot_be_made_is_made_later, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.say(&["stop", &id]).assert_success();
    write(&home, &id, |_, _, writer| fill_part(writer));
    // What stands in the way of the next part.
    let obstacle = home.state().join("audit").join(format!(".{id}.jsonl.new"));
    fs::create_dir(&obstacle).unwrap();
    home.say(&["start", &id]).assert_success();
    let long_ago = verified(&home, &id);
    for _ in 0..3 {
        home.exec(&id, &["true"]);
    }
    assert_eq!(verified(&home, &id), long_ago + 6);
    fs::remove_dir(&obstacle).unwrap();
    let is_newer = || fs::metadata(part(&home, &id, Part::Newest)).unwrap().len() < PART_LIMIT;
    for _ in 0..60 {
        std::thread::sleep(std::time::Duration::from_millis(250));
        home.exec(&id, &["true"]);
        if is_newer() {
            break;
        }
    }
    assert!(is_newer(), "the next part was never asked for again");
    home.exec(&id, &["true"]);
    home.say(&["stop", &id]).assert_success();
    assert!(
        fs::metadata(part(&home, &id, Part::Newest)).unwrap().len() > 0,
        "nobody writes to the next part"
    );
    verified(&home, &id);
});

callers!(a_supervisor_killed_in_the_middle_of_writing_breaks_nothing, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let argument = "y".repeat(60 << 10);
    for round in 0..4 {
        let pid = home.status(&id)["supervisor"].as_i64().unwrap().try_into().unwrap();
        let writing: Vec<_> =
            (0..6).map(|_| home.begin(&["exec", "--detach", &id, "--", "true", &argument])).collect();
        std::thread::sleep(std::time::Duration::from_millis(5 + 4 * round));
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        for each in writing {
            let _ = each.finish();
        }
        home.say(&["wait", &id]).assert_success();
        verified(&home, &id);
        let last = home.say(&["audit", &id]).assert_success().stdout();
        let last = last.lines().last().unwrap().to_owned();
        assert!(last.contains("lost") && last.contains("the supervisor was killed"), "{last}");
        home.say(&["start", &id]).assert_success();
    }
});

/// Files that a test made as root are the caller's.
fn give_back(home: &Home, id: &str, caller: Caller) {
    for entry in fs::read_dir(home.state().join("audit")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(id) {
            caller.own(&entry.path());
        }
    }
}
