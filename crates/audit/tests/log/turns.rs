//! One writer after the other, and no more parts than are due.

use std::fs;
use std::time::{Duration, Instant};

use audit::{
    Event, Head, OurProcess, PART_LIMIT, PARTS_LIMIT, Part, ReadError, StopReason, Writer, conclude,
    next_part, take_turn,
};

use crate::harness::{Log, fill, large, moment};

const LOST: Event = Event::Lost { process: OurProcess::Keeper };
const STOPPED: Event = Event::Stopped { reason: StopReason::Asked, code: None };

/// Fills the newest part up to its limit, and a little over it.
fn fill_part(writer: &mut Writer) {
    while !writer.is_full() {
        let number = writer.head().seq + 1;
        writer.append(moment(number), &large(number, 40_000)).unwrap();
    }
}

#[test]
fn a_writer_waits_for_the_one_before() {
    let log = Log::new();
    let turn = take_turn(log.path(), &log.id).unwrap();
    let mut first = Writer::new(turn.descriptor, turn.head).unwrap();
    fill(&mut first, 1);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let turn = take_turn(log.path(), &log.id).unwrap();
            assert_eq!(turn.head.seq, 3, "it began before the first writer had ended");
            turn.write(&STOPPED).unwrap();
        });
        std::thread::sleep(Duration::from_millis(100));
        fill(&mut first, 2);
        drop(first);
        second.join().unwrap();
    });
    assert_eq!(log.verify().unwrap().count, 4);
}

#[test]
fn one_that_never_ends_is_not_waited_for_for_ever() {
    let log = Log::new();
    let _turn = take_turn(log.path(), &log.id).unwrap();
    let start = Instant::now();
    assert!(matches!(take_turn(log.path(), &log.id), Err(ReadError::Busy(_))));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_end_is_written_once() {
    let log = Log::new();
    // Nothing is made of what has not begun.
    assert!(!conclude(log.path(), &log.id, &LOST).unwrap());
    assert!(!log.file(Part::Newest).exists());
    fill(&mut log.writer(), 2);
    assert!(conclude(log.path(), &log.id, &LOST).unwrap());
    assert!(!conclude(log.path(), &log.id, &LOST).unwrap());
    fill(&mut log.writer(), 1);
    log.writer().append(moment(5), &STOPPED).unwrap();
    assert!(!conclude(log.path(), &log.id, &LOST).unwrap());
    assert_eq!(log.verify().unwrap().count, 5);
    // What was torn after an end was the beginning of more.
    let mut torn = log.bytes(Part::Newest);
    torn.extend_from_slice(b"{\"seq\":6,\"time\":\"20");
    log.put(Part::Newest, &torn);
    assert!(conclude(log.path(), &log.id, &LOST).unwrap());
    let verified = log.verify().unwrap();
    assert_eq!((verified.count, verified.torn), (7, 1));
}

#[test]
fn a_part_is_given_when_the_last_is_full_and_not_before() {
    let log = Log::new();
    let turn = take_turn(log.path(), &log.id).unwrap();
    let mut writer = Writer::new(turn.descriptor, turn.head).unwrap();
    fill(&mut writer, 1);
    assert!(matches!(next_part(log.path(), &log.id), Err(ReadError::NotFull(_))));
    fill_part(&mut writer);
    assert!(fs::metadata(log.file(Part::Newest)).unwrap().len() >= PART_LIMIT);
    let part = next_part(log.path(), &log.id).unwrap();
    // Whoever asks again without having written gets nothing.
    assert!(matches!(next_part(log.path(), &log.id), Err(ReadError::NotFull(_))));
    writer.go_on(part).unwrap();
    fill(&mut writer, 1);
    // The lock has come along.
    assert!(matches!(take_turn(log.path(), &log.id), Err(ReadError::Busy(_))));
    drop(writer);
    let turn = take_turn(log.path(), &log.id).unwrap();
    let verified = log.verify().unwrap();
    assert_eq!((verified.count, verified.head), (turn.head.seq, turn.head.hash));
}

#[test]
fn there_are_only_so_many_parts() {
    let log = Log::with_parts(&[1; PARTS_LIMIT - 1]);
    let mut writer = log.writer();
    fill_part(&mut writer);
    writer.go_on(next_part(log.path(), &log.id).unwrap()).unwrap();
    fill_part(&mut writer);
    assert!(matches!(next_part(log.path(), &log.id), Err(ReadError::Full(_))));
    assert!(!log.file(Part::Numbered(PARTS_LIMIT as u64)).exists());
    assert_eq!(log.verify().unwrap().count, Head::read(log.path(), &log.id).unwrap().seq);
}
