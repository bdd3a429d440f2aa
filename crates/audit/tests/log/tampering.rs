//! Whatever somebody does to a log is found; that its end is gone is found by whoever kept the head.

use std::fs;
use std::sync::OnceLock;

use audit::{Broken, Ending, Flaw, Part, ReadError};
use proptest::prelude::*;

use crate::harness::{Log, fill};

const PARTS: [Part; 3] = [Part::Numbered(1), Part::Numbered(2), Part::Newest];

/// A log of three parts, in which a write was cut off once; a copy of the first that was made, as beginning a part
/// waits for the disk.
fn original() -> (Log, Vec<Vec<u8>>) {
    static MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let parts = MADE.get_or_init(make);
    let log = Log::new();
    put(&log, parts);
    (log, parts.clone())
}

fn make() -> Vec<Vec<u8>> {
    let log = Log::with_parts(&[2, 2]);
    let torn = log.bytes(Part::Newest)[..30].to_vec();
    let bytes = [log.bytes(Part::Newest), torn].concat();
    log.put(Part::Newest, &bytes);
    let mut writer = log.writer();
    fill(&mut writer, 1);
    writer.go_on(log.next_part()).unwrap();
    fill(&mut writer, 3);
    let verified = log.verify_to(writer.head().hash).unwrap();
    assert_eq!((verified.count, verified.torn, verified.ending), (9, 1, Ending::Clean));
    PARTS.map(|part| log.bytes(part)).to_vec()
}

fn put(log: &Log, parts: &[Vec<u8>]) {
    PARTS.iter().zip(parts).for_each(|(part, bytes)| log.put(*part, bytes));
}

/// A log with every byte changed by `change`, one at a time; says at which of them nothing was found.
fn unnoticed(change: impl Fn(&mut Vec<u8>, usize)) -> Vec<(Part, usize)> {
    let (log, parts) = original();
    let mut unnoticed = Vec::new();
    for (index, part) in PARTS.into_iter().enumerate() {
        for at in 0..parts[index].len() {
            let mut changed = parts.clone();
            change(&mut changed[index], at);
            log.put(part, &changed[index]);
            match log.verify() {
                Err(_) => {}
                // The last newline of all: as a write that was cut off, which is noted.
                Ok(noted) if part == Part::Newest && at + 1 == parts[index].len() => {
                    assert_ne!(noted.ending, Ending::Clean);
                }
                Ok(_) => unnoticed.push((part, at)),
            }
        }
        log.put(part, &parts[index]);
    }
    unnoticed
}

#[test]
fn any_flipped_byte_is_found() {
    for mask in [1, 0x20, 0x80] {
        assert_eq!(unnoticed(|bytes, at| bytes[at] ^= mask), []);
    }
}

#[test]
fn any_deleted_byte_is_found() {
    assert_eq!(unnoticed(|bytes, at| _ = bytes.remove(at)), []);
}

#[test]
fn any_inserted_byte_is_found() {
    for byte in *b"\n x" {
        assert_eq!(unnoticed(|bytes, at| bytes.insert(at, byte)), []);
    }
}

#[test]
fn a_cut_end_is_found_by_the_head_alone() {
    let (log, parts) = original();
    let head = log.head().hash;
    let earlier = {
        put(&log, &[parts[0].clone(), parts[1].clone(), Vec::new()]);
        log.head().hash
    };
    let newest = &parts[2];
    for length in 0..=newest.len() {
        log.put(Part::Newest, &newest[..length]);
        let noted = log.verify().unwrap();
        assert_eq!(noted.expected, None);
        let is_clean = length == 0 || newest[length - 1] == b'\n';
        assert_eq!(noted.ending == Ending::Clean, is_clean, "at {length}");
        assert_eq!(log.verify_to(earlier).unwrap().expected, Some(6));
        let found = log.verify_to(head);
        if length + 1 >= newest.len() {
            assert_eq!(found.unwrap().expected, Some(9));
        } else {
            let Err(Broken { why: Flaw::HeadNotReached(hash), .. }) = found else {
                panic!("at {length}: {found:?}")
            };
            assert_eq!(hash, head);
        }
    }
}

#[test]
fn the_first_broken_place_is_named() {
    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }
    fn text(line: &[u8], from: &str, to: &str) -> Vec<u8> {
        let line = String::from_utf8(line.to_vec()).unwrap();
        assert!(line.contains(from));
        line.replace(from, to).into_bytes()
    }
    type Change = fn(&mut Vec<Vec<u8>>);
    type IsRight = fn(&Flaw) -> bool;
    let cases: [(usize, Change, u64, IsRight); 10] = [
        (
            0,
            |lines| lines[1] = text(&lines[1], "\"code\":0", "\"code\":1"),
            2,
            |why| matches!(why, Flaw::Hash),
        ),
        (
            0,
            |lines| lines[1] = text(&lines[1], "\"code\":0", "\"code\":"),
            2,
            |why| matches!(why, Flaw::NotARecord),
        ),
        (0, |lines| lines.swap(0, 1), 1, |why| matches!(why, Flaw::Seq { expected: 1, found: 2 })),
        (0, |lines| drop(lines.remove(1)), 1, |why| matches!(why, Flaw::Gap { expected: 2, found: 3 })),
        (0, |lines| _ = lines[1].pop(), 2, |why| matches!(why, Flaw::NoNewline)),
        (1, |lines| drop(lines.remove(2)), 3, |why| matches!(why, Flaw::Torn)),
        (1, |lines| lines[2].insert(9, b' '), 4, |why| matches!(why, Flaw::Torn)),
        (1, |lines| lines.insert(2, b"{}\n".to_vec()), 5, |why| matches!(why, Flaw::Torn)),
        (2, |lines| lines.insert(1, b"{}\n".to_vec()), 2, |why| matches!(why, Flaw::NotARecord)),
        (
            2,
            |lines| lines[1].splice(9..9, vec![b' '; 70_000]).for_each(drop),
            2,
            |why| matches!(why, Flaw::TooLong),
        ),
    ];
    for (number, (index, change, line, is_right)) in cases.into_iter().enumerate() {
        let (log, parts) = original();
        let mut lines = lines(&parts[index]);
        change(&mut lines);
        log.put(PARTS[index], &lines.concat());
        let broken = log.verify().unwrap_err();
        // A gap shows where the next part begins.
        let at = if matches!(broken.why, Flaw::Gap { .. }) { PARTS[index + 1] } else { PARTS[index] };
        assert_eq!((broken.part, broken.line), (at, line), "case {number}: {broken:?}");
        assert!(is_right(&broken.why), "case {number}: {broken:?}");
    }
}

#[test]
fn a_record_of_another_log_does_not_fit() {
    let log = Log::with_parts(&[3]);
    let other = Log::new();
    let mut writer = other.writer();
    writer.append(crate::harness::moment(9), &audit::Event::Paused).unwrap();
    fill(&mut writer, 2);
    let ours = log.bytes(Part::Newest);
    let theirs = other.bytes(Part::Newest);
    let second = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').nth(1).unwrap().to_vec();
    let first = ours.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    log.put(Part::Newest, &[first, &second(&theirs)].concat());
    let broken = log.verify().unwrap_err();
    assert!(matches!(broken, Broken { part: Part::Newest, line: 2, why: Flaw::Prev }), "{broken:?}");
}

#[test]
fn a_missing_part_is_named() {
    for part in [Part::Numbered(1), Part::Newest] {
        let (log, _) = original();
        fs::remove_file(log.file(part)).unwrap();
        let broken = log.verify().unwrap_err();
        let Flaw::Unreadable(ReadError::MissingPart(path)) = broken.why else { panic!("{broken:?}") };
        assert_eq!(path, log.file(part));
    }
    // The last number is not missed by the others' names, but by the records.
    let (log, _) = original();
    fs::remove_file(log.file(Part::Numbered(2))).unwrap();
    let broken = log.verify().unwrap_err();
    let gap = Flaw::Gap { expected: 3, found: 7 };
    assert_eq!(format!("{broken:?}"), format!("{:?}", Broken { part: Part::Newest, line: 1, why: gap }));
    let log = Log::new();
    assert!(matches!(log.verify().unwrap_err().why, Flaw::Unreadable(ReadError::NoLog(_))));
}

#[derive(Clone, Debug)]
enum Edit {
    Flip(usize, u8),
    DeleteByte(usize),
    InsertByte(usize, u8),
    SwapBytes(usize, usize),
    DeleteLine(usize),
    InsertLine(usize, Vec<u8>),
    CopyLine(usize, usize),
    SwapLines(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || any::<usize>();
    prop_oneof![
        (at(), 1_u8..).prop_map(|(at, mask)| Edit::Flip(at, mask)),
        at().prop_map(Edit::DeleteByte),
        (at(), any::<u8>()).prop_map(|(at, byte)| Edit::InsertByte(at, byte)),
        (at(), at()).prop_map(|(one, other)| Edit::SwapBytes(one, other)),
        at().prop_map(Edit::DeleteLine),
        (at(), proptest::collection::vec(any::<u8>(), 0..90))
            .prop_map(|(at, line)| Edit::InsertLine(at, line)),
        (at(), at()).prop_map(|(from, to)| Edit::CopyLine(from, to)),
        (at(), at()).prop_map(|(one, other)| Edit::SwapLines(one, other)),
    ]
}

/// Carries an edit out on one part.
fn apply(bytes: &mut Vec<u8>, edit: Edit) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let count = lines.len();
    match edit {
        Edit::Flip(at, mask) => bytes[at % length] ^= mask,
        Edit::DeleteByte(at) => _ = bytes.remove(at % length),
        Edit::InsertByte(at, byte) => bytes.insert(at % (length + 1), byte),
        Edit::SwapBytes(one, other) => bytes.swap(one % length, other % length),
        Edit::DeleteLine(at) => {
            lines.remove(at % count);
            *bytes = lines.concat();
        }
        Edit::InsertLine(at, line) => {
            lines.insert(at % (count + 1), [line, b"\n".to_vec()].concat());
            *bytes = lines.concat();
        }
        Edit::CopyLine(from, to) => {
            lines.insert(to % (count + 1), lines[from % count].clone());
            *bytes = lines.concat();
        }
        Edit::SwapLines(one, other) => {
            lines.swap(one % count, other % count);
            *bytes = lines.concat();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_edits_are_found(index in 0_usize..3, edits in proptest::collection::vec(edit(), 1..4)) {
        let (log, parts) = original();
        let head = log.head().hash;
        let mut changed = parts.clone();
        edits.into_iter().for_each(|edit| apply(&mut changed[index], edit));
        put(&log, &changed);
        let is_the_same = changed == parts;
        // Only a beginning of the log can pass, with or without a torn end that is noted.
        if let Ok(noted) = log.verify() {
            let (whole, left) = (parts.concat(), changed.concat());
            let torn = match noted.ending {
                Ending::Clean | Ending::NoNewline => 0,
                Ending::Torn(torn) => usize::try_from(torn.bytes()).unwrap(),
            };
            prop_assert!(whole.starts_with(&left[..left.len() - torn]), "{:?}", noted);
        }
        let lacks_newline = changed.concat().len() + 1 == parts.concat().len();
        match log.verify_to(head) {
            Ok(noted) => prop_assert!(is_the_same || noted.ending != Ending::Clean || lacks_newline),
            Err(_) => prop_assert!(!is_the_same),
        }
    }
}
