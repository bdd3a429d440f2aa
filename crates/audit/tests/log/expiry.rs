//! Logs of the gone and old are removed; nothing else is, whatever it is called.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use audit::{Event, Head, Part, Writer, begin_part, expire, open};
use policy::SandboxId;

const DAY: Duration = Duration::from_secs(86_400);

/// Makes a log of two parts whose last record and file are of `time`.
fn log(directory: &Path, id: &str, time: SystemTime) -> SandboxId {
    let id: SandboxId = id.parse().unwrap();
    let mut writer = Writer::new(open(directory, &id).unwrap(), Head::START).unwrap();
    writer.append(time, &Event::Paused).unwrap();
    writer.go_on(begin_part(directory, &id).unwrap()).unwrap();
    writer.append(time, &Event::Removed).unwrap();
    for part in [Part::Numbered(1), Part::Newest] {
        date(&directory.join(part.file_name(&id)), time);
    }
    id
}

fn date(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn only_the_gone_and_old_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path();
    let now = SystemTime::now();
    let old = log(directory, "000000000000", now - 40 * DAY);
    log(directory, "111111111111", now - 40 * DAY);
    log(directory, "222222222222", now - 20 * DAY);
    let expected =
        ["111111111111.1.jsonl", "111111111111.jsonl", "222222222222.1.jsonl", "222222222222.jsonl"];
    // What an interrupted beginning of a part leaves goes with its log.
    fs::write(directory.join(".000000000000.jsonl.new"), "").unwrap();
    let removed = expire(directory, now - 30 * DAY, |id| id == "111111111111").unwrap();
    assert_eq!(removed, [old]);
    assert_eq!(names(directory), expected);
}

#[test]
fn nothing_else_is_touched() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("audit");
    fs::create_dir(&directory).unwrap();
    let now = SystemTime::now();
    let outside = root.path().join("outside");
    fs::write(&outside, "the owner's").unwrap();
    date(&outside, now - 90 * DAY);
    for name in ["notes.jsonl", "333333333333.jsonl.bak", "333333333333.01.jsonl", "333333333333", ".jsonl"] {
        fs::write(directory.join(name), "").unwrap();
        date(&directory.join(name), now - 90 * DAY);
    }
    symlink(&outside, directory.join("444444444444.jsonl")).unwrap();
    fs::create_dir(directory.join("555555555555.jsonl")).unwrap();
    log(&directory, "666666666666", now - 90 * DAY);
    fs::remove_file(directory.join("666666666666.1.jsonl")).unwrap();
    symlink(&outside, directory.join("666666666666.1.jsonl")).unwrap();
    let before = names(&directory);
    assert_eq!(expire(&directory, now, |_| false).unwrap(), []);
    assert_eq!(names(&directory), before);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "the owner's");
}

#[test]
fn a_log_cannot_make_itself_older_or_live_for_ever() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path();
    let now = SystemTime::now();
    // The records say that they are old, the kernel says that they were written today.
    let backdated = log(directory, "777777777777", now - 90 * DAY);
    for part in [Part::Numbered(1), Part::Newest] {
        date(&directory.join(part.file_name(&backdated)), now);
    }
    // A record of the future, a log that was emptied, a log that is broken: as old as their files.
    let future = log(directory, "888888888888", now + 9000 * DAY);
    let empty = log(directory, "999999999999", now - 90 * DAY);
    let broken = log(directory, "aaaaaaaaaaaa", now - 90 * DAY);
    for id in [&future, &empty, &broken] {
        let newest = directory.join(Part::Newest.file_name(id));
        if id == &broken {
            fs::write(&newest, "nothing\nof ours\n").unwrap();
        } else if id == &empty {
            fs::write(&newest, "").unwrap();
        }
        date(&newest, now - 90 * DAY);
        date(&directory.join(Part::Numbered(1).file_name(id)), now - 90 * DAY);
    }
    // The file was copied with an old date; the record knows better.
    let copied = log(directory, "bbbbbbbbbbbb", now - DAY);
    for part in [Part::Numbered(1), Part::Newest] {
        date(&directory.join(part.file_name(&copied)), now - 90 * DAY);
    }
    let removed = expire(directory, now - 30 * DAY, |_| false).unwrap();
    assert_eq!(removed, [future, empty, broken]);
    assert_eq!(names(directory).len(), 4);
}
