//! Every kind has its line, and nothing hostile comes out of one alive.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use policy::{Backend, Limits, User, Wall};
use proptest::prelude::*;

use super::*;
use crate::record::encode;
use crate::text::is_visible;
use crate::{
    Direction, FileOperation, Hash, Limit, OurProcess, PortChange, RECORD_LIMIT, StopReason, TerminalChange,
    Time, Torn,
};

fn record(event: &Event) -> Record {
    let time: SystemTime = UNIX_EPOCH + Duration::from_millis(1_794_798_245_678);
    let mut bytes = Vec::new();
    encode(&mut bytes, (u64::MAX, Hash::ZERO), Time::from(time), event).unwrap();
    assert!(bytes.len() <= RECORD_LIMIT, "{} bytes", bytes.len());
    assert_eq!(bytes.pop(), Some(b'\n'));
    let record = Record::parse(&bytes).unwrap();
    assert_eq!(record.event, Recorded::Known(event.clone()));
    assert_eq!(record.json().as_bytes(), bytes);
    record
}

fn exec(argv: Arguments, text: &[u8]) -> Event {
    let (cwd, terminal) = (Text::new(text), Some(Text::new(text)));
    Event::Exec { exec: 3, argv, cwd, user: User::AGENT, terminal, detached: true }
}

/// One event of each kind, with `text` wherever a text of the sandbox's can be.
fn events(text: &[u8]) -> Vec<Event> {
    let hostile = || Text::new(text);
    vec![
        Event::Created { name: Some("web".parse().unwrap()), backend: Backend::Native },
        Event::Started { missing: Wall::ALL.to_vec(), weaker: vec![] },
        Event::Stopped { reason: StopReason::Exited, code: Some(7) },
        Event::Removed,
        exec(Arguments::new([text, b"", b"b c"]), text),
        Event::Exited { exec: 3, code: None, signal: Some(9), timed_out: true, out_of_memory: true },
        Event::Failed { exec: 3, step: hostile(), errno: 2 },
        Event::File {
            operation: FileOperation::Write,
            path: hostile(),
            direction: Direction::In,
            bytes: Some(42),
            ok: false,
        },
        Event::Limit { which: Limit::Memory },
        Event::Terminal { name: hostile(), what: TerminalChange::Attached },
        Event::Port { what: PortChange::Added, address: "::1".parse().unwrap(), port: 8080 },
        Event::Paused,
        Event::Resumed,
        Event::Updated { limits: Limits::default() },
        Event::Entrances { ports: (65_000..65_065).collect() },
        Event::Lost { process: OurProcess::Keeper },
        Event::Torn(Torn { bytes: 5, sha256: Hash::ZERO }),
    ]
}

#[test]
fn every_kind_has_its_line() {
    let lines: Vec<_> = events(b"/a\x1b[2J").iter().map(|event| line(&record(event))).collect();
    let walls = Wall::ALL.iter().map(|wall| wall.name()).collect::<Vec<_>>().join(" ");
    let ports = (65_000..65_065).map(|port| port.to_string()).collect::<Vec<_>>().join(" ");
    let time = "2026-11-16T03:04:05.678Z";
    let expected = [
        "created   web, native".to_owned(),
        format!("started   missing walls: {walls}; weaker: none"),
        "stopped   exited code 7".to_owned(),
        "removed".to_owned(),
        r#"exec      #3 1000:1000 in /a\x1b[2J terminal=/a\x1b[2J detached: /a\x1b[2J "" "b c""#.to_owned(),
        "exited    #3 signal 9 timed-out out-of-memory".to_owned(),
        r"failed    #3 /a\x1b[2J, errno 2".to_owned(),
        r"file      write /a\x1b[2J in 42 bytes failed".to_owned(),
        "limit     memory".to_owned(),
        r"terminal  /a\x1b[2J attached".to_owned(),
        "port      added [::1]:8080".to_owned(),
        "paused".to_owned(),
        "resumed".to_owned(),
        "updated   memory 4GiB, cpus 4, pids 512, disk 2GiB".to_owned(),
        format!("entrances  weaker: egress; only ports {ports} lead out"),
        "lost      the keeper was killed".to_owned(),
        "torn      a write was cut off: 5 bytes before this are no record".to_owned(),
    ];
    let expected: Vec<_> = expected.into_iter().map(|rest| format!("{time}  {rest}")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_kind_of_another_version_is_shown_as_it_is() {
    let mut record = record(&Event::Paused);
    record.event = Recorded::Unknown(Text::new("{\"kind\":\"dreamt\u{1b}\"}"));
    assert_eq!(line(&record), "2026-11-16T03:04:05.678Z  unknown   {\"kind\":\"dreamt\\x1b\"}");
}

#[test]
fn the_largest_record_fits() {
    // What takes most room in the file, in every place at once.
    let worst = vec![0xff; 200_000];
    let event = exec(Arguments::new([&worst, &worst]), &worst);
    assert!(line(&record(&event)).len() < 3000);
    let many = exec(Arguments::new(std::iter::repeat_n("", 200_000)), &worst);
    assert!(line(&record(&many)).len() < 3000);
}

proptest! {
    #[test]
    fn nothing_acts_on_a_terminal(text in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        any::<String>().prop_map(String::into_bytes),
    ]) {
        for event in events(&text) {
            let shown = line(&record(&event));
            prop_assert!(
                shown.chars().all(|c| c == ' ' || c.is_ascii_graphic() || !c.is_ascii() && is_visible(c)),
                "{shown:?}"
            );
        }
    }
}
