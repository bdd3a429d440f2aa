//! What a writer leaves behind, whatever the kernel takes of it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use audit::{
    Ending, Event, Head, Part, RECORD_LIMIT, ReadError, Recorded, WriteError, Writer, begin_part, records,
};
use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::pipe::PipeFlags;

use crate::harness::{Log, fill, large, moment, small};

#[test]
fn records_go_on_through_parts() {
    let log = Log::new();
    let mut writer = log.writer().with_part_limit(1000);
    let mut parts = 1;
    for number in 1..=40 {
        if writer.is_full() {
            writer.go_on(log.next_part()).unwrap();
            parts += 1;
        }
        writer.append(moment(number), &small(number)).unwrap();
    }
    assert!(parts > 5, "{parts}");
    for number in 1..parts {
        let length = log.bytes(Part::Numbered(number)).len();
        assert!((1000..1500).contains(&length), "part {number} has {length} bytes");
    }
    assert!(!log.file(Part::Numbered(parts)).exists());
    let verified = log.verify_to(writer.head().hash).unwrap();
    assert_eq!((verified.count, verified.expected, verified.ending), (40, Some(40), Ending::Clean));
    assert_eq!((verified.first, verified.last), (Some(moment(1).into()), Some(moment(40).into())));
    assert_eq!(log.head(), *writer.head());
}

#[test]
fn an_empty_part_is_not_given_a_number() {
    let log = Log::with_parts(&[2, 0]);
    let _descriptor = log.next_part();
    assert!(!log.file(Part::Numbered(2)).exists());
    // Killed after the number was given and before the new part was there.
    fill(&mut log.writer(), 1);
    fs::hard_link(log.file(Part::Newest), log.file(Part::Numbered(2))).unwrap();
    assert_eq!(log.verify().unwrap().count, 3);
    let mut writer = log.writer();
    writer.go_on(log.next_part()).unwrap();
    fill(&mut writer, 1);
    assert!(!log.file(Part::Numbered(3)).exists());
    assert_eq!(log.verify().unwrap().count, 4);
}

#[test]
fn every_torn_end_is_gone_on_from() {
    let whole = Log::with_parts(&[2, 3]);
    let newest = whole.bytes(Part::Newest);
    for length in 0..=newest.len() {
        for in_new_part in [false, true] {
            let log = Log::new();
            log.put(Part::Numbered(1), &whole.bytes(Part::Numbered(1)));
            log.put(Part::Newest, &newest[..length]);
            let noted = log.verify().unwrap();
            assert_eq!(noted.ending, log.head().ending, "at {length}");
            let mut writer = if in_new_part {
                let descriptor = log.next_part();
                Writer::new(descriptor, log.head()).unwrap()
            } else {
                log.writer()
            };
            fill(&mut writer, 2);
            let verified = log.verify_to(writer.head().hash).unwrap();
            let torn = match noted.ending {
                Ending::Clean => 0,
                Ending::NoNewline => u64::from(in_new_part),
                Ending::Torn(_) => 1,
            };
            assert_eq!((verified.torn, verified.count), (torn, noted.count + torn + 2), "at {length}");
            assert_eq!(verified.ending, Ending::Clean);
            assert!(records(log.path(), &log.id).unwrap().all(|record| record.is_ok()), "at {length}");
        }
    }
}

#[test]
fn a_writer_that_leaves_a_line_without_its_newline_says_so() {
    let log = Log::with_parts(&[2]);
    let bytes = log.bytes(Part::Newest);
    log.put(Part::Newest, &bytes[..bytes.len() - 1]);
    let mut writer = log.writer();
    assert_eq!(writer.head().ending, Ending::NoNewline);
    writer.go_on(log.next_part()).unwrap();
    fill(&mut writer, 1);
    let verified = log.verify().unwrap();
    assert_eq!((verified.count, verified.torn, verified.ending), (4, 1, Ending::Clean));
}

#[test]
fn what_is_torn_twice_is_accounted_for_once() {
    let log = Log::with_parts(&[2]);
    let next = Log::with_parts(&[3]).bytes(Part::Newest);
    let start = log.bytes(Part::Newest).len();
    let mut file = File::options().append(true).open(log.file(Part::Newest)).unwrap();
    file.write_all(&next[start..start + 50]).unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(&next[start..start + 20]).unwrap();
    assert!(matches!(log.verify().unwrap().ending, Ending::Torn(torn) if torn.bytes() == 71));
    let mut writer = log.writer();
    // Over to another part before the torn end is accounted for: it is said there.
    writer.go_on(log.next_part()).unwrap();
    fill(&mut writer, 1);
    let verified = log.verify().unwrap();
    assert_eq!((verified.count, verified.torn), (4, 1));
    let mut read = records(log.path(), &log.id).unwrap().map(Result::unwrap);
    assert!(matches!(read.nth(2).unwrap().event, Recorded::Known(Event::Torn(torn)) if torn.bytes() == 71));
}

#[test]
fn a_changed_end_is_not_gone_on_from() {
    let log = Log::with_parts(&[3]);
    let good = log.bytes(Part::Newest);
    let last = good[..good.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for at in last..good.len() - 1 {
        let mut changed = good.clone();
        changed[at] ^= 1;
        log.put(Part::Newest, &changed);
        assert!(matches!(Head::read(log.path(), &log.id), Err(ReadError::NoHead(_))), "a flip at {at}");
    }
}

#[test]
fn only_an_end_that_readers_take_is_gone_on_from() {
    let log = Log::with_parts(&[1]);
    let record = log.bytes(Part::Newest);
    let padded = |before: usize, after: usize| [&vec![b'x'; before], &record[..], &vec![0; after]].concat();
    // As a power cut may leave it, and one byte longer than any record.
    log.put(Part::Newest, &padded(0, RECORD_LIMIT - 1));
    assert!(matches!(log.head().ending, Ending::Torn(_)) && log.verify().is_ok());
    fill(&mut log.writer(), 1);
    assert_eq!(log.verify().unwrap().count, 3);
    log.put(Part::Newest, &padded(0, RECORD_LIMIT));
    assert!(Head::read(log.path(), &log.id).is_err() && log.verify().is_err());
    // A record in the middle of a line is none, wherever one begins to look.
    let begun = b"{\"seq\":2\n".repeat(30_000);
    for before in (4 * RECORD_LIMIT - 10..4 * RECORD_LIMIT).chain([1000]) {
        log.put(Part::Newest, &padded(before, 0));
        assert!(Head::read(log.path(), &log.id).is_err(), "{before}");
    }
    log.put(Part::Newest, &[&padded(1000, 0), &begun[..4 * RECORD_LIMIT - record.len()]].concat());
    assert!(Head::read(log.path(), &log.id).is_err());
    // Nor is the head of a log its start because there is no record near its end.
    log.put(Part::Newest, &b"{\"seq\":1\n".repeat(60_000)[..4 * RECORD_LIMIT + 9000]);
    assert!(Head::read(log.path(), &log.id).is_err());
}

#[test]
fn a_descriptor_that_would_break_the_log_is_refused() {
    let log = Log::with_parts(&[2]);
    let plain: OwnedFd = File::options().write(true).open(log.file(Part::Newest)).unwrap().into();
    assert!(matches!(Writer::new(plain, log.head()), Err(WriteError::NotAppending)));
    let stale = Head { length: 5, ..log.head() };
    let open = || audit::open(log.path(), &log.id).unwrap();
    assert!(matches!(Writer::new(open(), stale), Err(WriteError::OtherLength { expected: 5, .. })));
    assert!(matches!(log.writer().go_on(open()), Err(WriteError::OtherLength { expected: 0, .. })));
}

#[test]
fn events_that_cannot_be_are_refused_and_leave_nothing() {
    let log = Log::with_parts(&[2]);
    let mut writer = log.writer();
    let missing = vec![policy::Wall::Seccomp; 10_000];
    let long = Event::Started { missing, weaker: Vec::new() };
    assert!(matches!(writer.append(moment(3), &long), Err(WriteError::TooLong(_))));
    let mut tearing = log.writer();
    File::options().append(true).open(log.file(Part::Newest)).unwrap().write_all(b"{").unwrap();
    assert!(Writer::new(audit::open(log.path(), &log.id).unwrap(), *tearing.head()).is_err());
    tearing = log.writer();
    fill(&mut tearing, 1);
    let torn = records(log.path(), &log.id).unwrap().map(Result::unwrap).nth(2).unwrap().event;
    let Recorded::Known(torn @ Event::Torn(_)) = torn else { panic!("{torn:?}") };
    assert!(matches!(tearing.append(moment(4), &torn), Err(WriteError::Reserved)));
    assert_eq!(log.verify().unwrap().count, 4);
}

#[test]
fn links_are_not_followed() {
    let log = Log::new();
    let elsewhere = log.path().join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, log.file(Part::Newest)).unwrap();
    assert!(matches!(audit::open(log.path(), &log.id), Err(ReadError::NotAFile(_))));
    assert!(matches!(begin_part(log.path(), &log.id), Err(ReadError::NotAFile(_))));
    assert!(matches!(Head::read(log.path(), &log.id), Err(ReadError::NotAFile(_))));
    assert!(log.verify().is_err());
    fs::remove_file(log.file(Part::Newest)).unwrap();
    // Nor is one replaced that stands where a part is made.
    fill(&mut log.writer(), 1);
    let unborn = log.path().join(format!(".{}.jsonl.new", log.id));
    std::os::unix::fs::symlink(&elsewhere, &unborn).unwrap();
    assert!(matches!(begin_part(log.path(), &log.id), Err(ReadError::NotAFile(path)) if path == unborn));
    assert!(unborn.is_symlink() && log.verify().is_ok());
    fs::remove_file(log.file(Part::Newest)).unwrap();
    fs::remove_file(log.file(Part::Numbered(1))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        log.file(Part::Newest),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(matches!(audit::open(log.path(), &log.id), Err(ReadError::NotAFile(_))));
    assert!(log.verify().is_err());
}

#[test]
fn a_pipe_that_is_full_gets_the_rest_later() {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    rustix::fs::fcntl_setfl(&write, OFlags::APPEND | OFlags::NONBLOCK).unwrap();
    rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK).unwrap();
    let mut read = File::from(read);
    let mut writer = Writer::new(write, Head::START).unwrap();
    let mut bytes = Vec::new();
    let (mut cut, mut refused) = (0, 0);
    for number in 1..=60 {
        match writer.append(moment(number), &large(number, 17_000)) {
            Ok(()) => {}
            Err(WriteError::Cut(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                cut += 1;
            }
            Err(WriteError::NotWritten(_)) => {
                refused += 1;
                assert!(writer.sync().is_ok());
                let _would_block = read.read_to_end(&mut bytes);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(cut > 3 && refused > 3, "{cut} {refused}");
    let _would_block = read.read_to_end(&mut bytes);
    // What came out is a log, with every record that was not refused; the last may still be cut.
    let log = Log::new();
    log.put(Part::Newest, &bytes);
    let verified = log.verify().unwrap();
    assert!(verified.count >= 60 - refused - 1, "{verified:?}");
    drop(read);
    assert!(matches!(writer.append(moment(61), &small(61)), Err(WriteError::NotWritten(_))));
}

/// A small tmpfs, there as long as this is.
struct SmallDisk<'path>(&'path Path);

impl<'path> SmallDisk<'path> {
    fn mount(path: &'path Path) -> Option<Self> {
        let mounted =
            rustix::mount::mount("audit-test", path, "tmpfs", MountFlags::empty(), Some(c"size=256k"));
        match mounted {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                eprintln!("skipped: no tmpfs can be mounted here: {error}");
                None
            }
        }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, UnmountFlags::DETACH);
    }
}

/// Writes until the disk is full; says whether the last record was cut.
fn until_full(writer: &mut Writer) -> bool {
    loop {
        let number = writer.head().seq + 1;
        match writer.append(moment(number), &large(number, 5000)) {
            Ok(()) => {}
            Err(WriteError::Cut(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                return true;
            }
            Err(WriteError::NotWritten(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                return false;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_full_disk_breaks_no_chain() {
    let log = Log::new();
    let Some(_disk) = SmallDisk::mount(log.path()) else { return };
    let ballast = log.path().join("ballast");
    fs::write(&ballast, vec![0; 64 << 10]).unwrap();
    let mut writer = log.writer();

    assert!(until_full(&mut writer), "a page is no multiple of a record");
    let noted = log.verify().unwrap();
    assert!(matches!(noted.ending, Ending::Torn(_)), "{noted:?}");
    assert_eq!(noted.count + 1, writer.head().seq);
    let before = *writer.head();
    assert!(matches!(writer.append(moment(1), &small(1)), Err(WriteError::NotWritten(_))));
    assert!(matches!(writer.go_on(log.next_part()), Err(WriteError::NotWritten(_))));
    assert_eq!(*writer.head(), before);

    // Room again: the same writer finishes what it began, in the part in which it began it.
    fs::write(&ballast, vec![0; 32 << 10]).unwrap();
    writer.go_on(log.next_part()).unwrap();
    fill(&mut writer, 1);
    let verified = log.verify_to(writer.head().hash).unwrap();
    assert_eq!((verified.count, verified.torn, verified.ending), (noted.count + 2, 0, Ending::Clean));

    // Full once more, and now the writer dies: the next one accounts for what is torn.
    while !until_full(&mut writer) {
        fs::write(&ballast, vec![0; 16 << 10]).unwrap();
        fill(&mut writer, 7);
    }
    drop(writer);
    let noted = log.verify().unwrap();
    assert!(matches!(noted.ending, Ending::Torn(_)), "{noted:?}");
    fs::remove_file(&ballast).unwrap();
    let mut writer = log.writer();
    fill(&mut writer, 1);
    let verified = log.verify_to(writer.head().hash).unwrap();
    assert_eq!((verified.count, verified.torn, verified.ending), (noted.count + 2, 1, Ending::Clean));
}
