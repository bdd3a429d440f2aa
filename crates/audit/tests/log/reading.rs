//! Reading beside a writer, and following it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use audit::{Ending, Part, ReadError, follow, records};

use crate::harness::{Log, fill, large, moment, small};

#[test]
fn a_log_can_be_read_while_it_is_written() {
    const COUNT: u64 = 2000;
    let log = Log::new();
    fill(&mut log.writer(), 1);
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = log.writer().with_part_limit(60_000);
            for number in 2..=COUNT {
                if writer.is_full() {
                    let descriptor = log.next_part();
                    // Some time passes until the writer has the new descriptor.
                    let event = if number % 2 == 0 { small(number) } else { large(number, 9000) };
                    writer.append(moment(number), &event).unwrap();
                    writer.go_on(descriptor).unwrap();
                } else {
                    let length = usize::try_from(number * 7919 % 6000).unwrap();
                    writer.append(moment(number), &large(number, length)).unwrap();
                }
            }
            is_written.store(true, Ordering::Release);
        });
        let verifying = scope.spawn(|| {
            let (mut last, mut rounds) = (0, 0);
            while !is_written.load(Ordering::Acquire) {
                let verified = log.verify().unwrap();
                assert!(verified.count >= last);
                (last, rounds) = (verified.count, rounds + 1);
            }
            rounds
        });
        let mut following = follow(log.path(), &log.id).unwrap();
        for number in 1..=COUNT {
            let record = following.next_within(Duration::from_secs(20)).unwrap().unwrap();
            assert_eq!((record.seq, record.time), (number, moment(number).into()));
        }
        // One that keeps pace with the writer to the end is as good as many.
        assert!(verifying.join().unwrap() > 0);
    });
    let seqs: Vec<_> = records(log.path(), &log.id).unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(seqs, (1..=COUNT).collect::<Vec<_>>());
    assert!(log.file(Part::Numbered(10)).exists());
}

#[test]
fn following_waits_no_longer_than_told() {
    let log = Log::with_parts(&[1]);
    let mut following = follow(log.path(), &log.id).unwrap();
    assert_eq!(following.next_within(Duration::ZERO).unwrap().unwrap().seq, 1);
    let start = Instant::now();
    assert_eq!(following.next_within(Duration::from_millis(150)).unwrap(), None);
    let waited = start.elapsed();
    assert!((Duration::from_millis(150)..Duration::from_secs(5)).contains(&waited), "{waited:?}");
}

#[test]
fn following_shows_each_record_once_however_it_ends() {
    let whole = Log::with_parts(&[2]).bytes(Part::Newest);
    let log = Log::new();
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    log.put(Part::Newest, &whole[..second + 40]);
    let mut following = follow(log.path(), &log.id).unwrap();
    let mut next = || following.next_within(Duration::ZERO).unwrap().map(|record| record.seq);
    assert_eq!((next(), next()), (Some(1), None));
    // All but the newline: it is a record, and is not one more when the newline comes.
    log.put(Part::Newest, &whole[..whole.len() - 1]);
    assert_eq!((next(), next()), (Some(2), None));
    let mut writer = log.writer();
    fill(&mut writer, 1);
    assert_eq!((next(), next()), (Some(3), None));
    writer.go_on(log.next_part()).unwrap();
    assert_eq!(next(), None);
    fill(&mut writer, 1);
    assert_eq!((next(), next()), (Some(4), None));
    assert_eq!(log.verify().unwrap().ending, Ending::Clean);
}

#[test]
fn a_line_that_is_no_record_is_told_and_passed_over() {
    let log = Log::with_parts(&[3]);
    let bytes = log.bytes(Part::Newest);
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.insert(1, b"\x1b]0;owned\x07\n");
    lines.push(b"{\"seq\":4,\"ti");
    log.put(Part::Newest, &lines.concat());
    let mut reader = records(log.path(), &log.id).unwrap();
    let read: Vec<_> = reader.by_ref().map(|record| record.map(|record| record.seq)).collect();
    let [Ok(1), Err(ReadError::NotARecord { part: Part::Newest, line: 2 }), Ok(2), Ok(3)] = &read[..] else {
        panic!("{read:?}")
    };
    assert!(reader.is_torn());
    let whole = Log::with_parts(&[3]);
    let mut reader = records(whole.path(), &whole.id).unwrap();
    assert_eq!((reader.by_ref().count(), reader.is_torn()), (3, false));
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    let log = Log::with_parts(&[1]);
    let file = std::fs::File::options().append(true).open(log.file(Part::Newest)).unwrap();
    file.set_len(1 << 40).unwrap();
    let read: Vec<_> = records(log.path(), &log.id).unwrap().collect();
    assert!(matches!(&read[..], [Ok(_), Err(ReadError::TooLong { line: 2, .. })]), "{read:?}");
    assert!(log.verify().is_err());
    assert!(audit::Head::read(log.path(), &log.id).is_err());
}
