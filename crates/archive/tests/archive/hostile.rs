//! Archives that an enemy made: each is refused, and nothing beside the directory has changed.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use archive::{
    ExtendedError, Field, HeaderError, Limit, Limits, NameError, Output, Special, Top, UnpackError, unpack,
};

use crate::builder::{Builder, LIMITS, Place};

fn begin() -> Builder {
    Builder::default()
}

/// Unpacks into a fresh place and gives the error.
fn refused(bytes: &[u8]) -> UnpackError {
    let place = Place::new();
    let error = place.unpack(bytes).unwrap_err();
    place.assert_untouched();
    error
}

fn name_error(bytes: &[u8]) -> NameError {
    match refused(bytes) {
        UnpackError::Name { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_that_lead_away_are_refused() {
    assert_eq!(name_error(&begin().file("../canary", "x").end()), NameError::Upwards);
    assert_eq!(name_error(&begin().file("a/../../canary", "x").end()), NameError::Upwards);
    assert_eq!(name_error(&begin().directory("..").end()), NameError::Upwards);
    assert_eq!(name_error(&begin().file("/tmp/agentbox-canary", "x").end()), NameError::Absolute);
    assert_eq!(name_error(&begin().file("", "x").end()), NameError::Empty);
    assert_eq!(name_error(&begin().file(".", "x").end()), NameError::Empty);
    assert_eq!(name_error(&begin().symbolic_link("a", "").end()), NameError::Empty);
}

#[test]
fn longer_names_lead_nowhere_else() {
    for (records, why) in [
        (("path", &b"../canary"[..]), NameError::Upwards),
        (("path", b"/etc/canary"), NameError::Absolute),
        (("path", b"a\0b"), NameError::Nul),
        (("path", b""), NameError::Empty),
    ] {
        assert_eq!(name_error(&begin().extended(&[records]).file("fine", "x").end()), why);
    }
    assert_eq!(
        name_error(&begin().entry(b'L', b"l", b"../canary\0").file("fine", "x").end()),
        NameError::Upwards
    );
    assert_eq!(name_error(&begin().entry(b'L', b"l", b"a\0b\0").file("fine", "x").end()), NameError::Nul);
    let link = begin().extended(&[("linkpath", b"../outside/secret")]).hard_link("a", "fine");
    assert_eq!(name_error(&link.end()), NameError::Upwards);
    let link = begin().entry(b'K', b"l", b"/etc/passwd\0").hard_link("a", "fine");
    assert_eq!(name_error(&link.end()), NameError::Absolute);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let header = |bytes: &[u8]| match refused(bytes) {
        UnpackError::Header(error) => error,
        other => panic!("{other:?}"),
    };
    let twice = begin().entry(b'L', b"l", b"a\0").extended(&[("path", b"b")]).file("c", "");
    assert_eq!(header(&twice.end()), HeaderError::Ambiguous);
    let twice = begin().extended(&[("path", b"a")]).extended(&[("path", b"b")]).file("c", "");
    assert_eq!(header(&twice.end()), HeaderError::Stray);
    assert_eq!(header(&begin().extended(&[("path", b"a")]).end()), HeaderError::Stray);
    assert_eq!(header(&begin().file("a\0b", "").end()), HeaderError::AfterNul(Field::Name));
    assert_eq!(header(&begin().entry(b'5', b"a", b"contents").end()), HeaderError::Sized);
    assert_eq!(header(&begin().header(b'1', b"a", b"b", b"10").end()), HeaderError::Sized);
    assert_eq!(header(&begin().entry(b'0', b"a/", b"contents").end()), HeaderError::Sized);
    let global = begin().entry(b'g', b"g", b"18 path=../canary\n").file("a", "");
    assert!(matches!(refused(&global.end()), UnpackError::Extended(ExtendedError::Global)));
    let same = begin().extended(&[("path", b"a"), ("path", b"b")]).file("c", "");
    assert!(matches!(refused(&same.end()), UnpackError::Extended(ExtendedError::Twice)));
}

#[test]
fn nothing_is_written_through_a_link_of_the_archive() {
    for target in ["../outside", "/tmp", "."] {
        let bytes = begin().symbolic_link("link", target).file("link/secret", "overwritten").end();
        assert!(matches!(refused(&bytes), UnpackError::Through { .. }), "{target}");
        let bytes = begin().symbolic_link("link", target).directory("link/new").end();
        assert!(matches!(refused(&bytes), UnpackError::Through { .. }), "{target}");
        let bytes = begin().symbolic_link("link", target).symbolic_link("link/new", "x").end();
        assert!(matches!(refused(&bytes), UnpackError::Through { .. }), "{target}");
    }
    // The file itself takes the place of the link.
    let place = Place::new();
    let bytes = begin().symbolic_link("secret", "../outside/secret").file("secret", "mine").end();
    place.unpack(&bytes).unwrap();
    assert_eq!(fs::read(place.root().join("secret")).unwrap(), b"mine");
    assert!(!fs::symlink_metadata(place.root().join("secret")).unwrap().is_symlink());
    place.assert_untouched();
    // And so does a directory, which is not one that the link leads to.
    let bytes = begin().symbolic_link("d", "../outside").directory("d").file("d/secret", "mine").end();
    place.unpack(&bytes).unwrap();
    place.assert_untouched();
}

#[test]
fn nothing_is_written_through_what_was_there() {
    let place = Place::new();
    symlink("../outside", place.root().join("link")).unwrap();
    symlink("../outside/secret", place.root().join("file")).unwrap();
    fs::hard_link(place.outside().join("secret"), place.root().join("hard")).unwrap();
    let error = place.unpack(&begin().file("link/secret", "x").end()).unwrap_err();
    assert!(matches!(error, UnpackError::Through { .. }), "{error:?}");
    place.unpack(&begin().file("file", "x").file("hard", "x").end()).unwrap();
    place.assert_untouched();
    assert_eq!(fs::read(place.root().join("hard")).unwrap(), b"x");
}

#[test]
fn hard_links_lead_only_to_files_of_the_archive() {
    let place = Place::new();
    fs::write(place.root().join("there"), "there").unwrap();
    symlink("../outside", place.root().join("out")).unwrap();
    let foreign = |builder: Builder| {
        let error = place.unpack(&builder.end()).unwrap_err();
        assert!(matches!(error, UnpackError::ForeignLink { .. }), "{error:?}");
        place.assert_untouched();
    };
    foreign(begin().hard_link("a", "there"));
    foreign(begin().hard_link("a", "missing"));
    foreign(begin().hard_link("a", "out/secret"));
    foreign(begin().hard_link("a", "out"));
    foreign(begin().symbolic_link("s", "../outside/secret").hard_link("a", "s"));
    foreign(begin().directory("d").hard_link("a", "d"));
    foreign(begin().file("a", "x").hard_link("a", "a"));
    foreign(begin().file("a", "x").symbolic_link("a", "there").hard_link("b", "a"));
    foreign(begin().hard_link("a", "."));
    place
        .unpack(&begin().file("x", "x").hard_link("y", "x").hard_link("y", "x").hard_link("z", "y").end())
        .unwrap();
    assert_eq!(fs::metadata(place.root().join("z")).unwrap().nlink(), 3);
}

#[test]
fn devices_and_pipes_are_refused() {
    for (kind, expected) in
        [(b'3', Special::CharacterDevice), (b'4', Special::BlockDevice), (b'6', Special::Fifo)]
    {
        let place = Place::new();
        match place.unpack(&begin().entry(kind, b"a", b"").end()) {
            Err(UnpackError::Special { special, .. }) => assert_eq!(special, expected),
            other => panic!("{other:?}"),
        }
        assert_eq!(place.names(), Vec::<String>::new());
    }
    for kind in [b'S', b'7', b'V', b'M', b'D', b'X', 0xff] {
        let error = refused(&begin().entry(kind, b"a", b"").end());
        assert!(
            matches!(error, UnpackError::Header(HeaderError::UnknownKind(found)) if found == kind),
            "{error:?}"
        );
    }
}

#[test]
fn a_pipe_in_the_way_is_replaced_and_not_opened() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.root().join("a")).status().unwrap().success());
    place.unpack(&begin().file("a", "x").end()).unwrap();
    assert_eq!(fs::read(place.root().join("a")).unwrap(), b"x");
}

#[test]
fn no_file_is_set_user_id() {
    let place = Place::new();
    let mut bytes = Vec::new();
    let from = Place::new();
    fs::create_dir(from.root().join("d")).unwrap();
    fs::write(from.root().join("d/f"), "").unwrap();
    fs::set_permissions(from.root().join("d/f"), PermissionsExt::from_mode(0o6755)).unwrap();
    fs::set_permissions(from.root().join("d"), PermissionsExt::from_mode(0o7777)).unwrap();
    archive::pack(File::open(from.root()).unwrap(), b"d", Output::Writer(&mut bytes), &mut |_| {}).unwrap();
    place.unpack(&bytes).unwrap();
    let mode = |name| fs::metadata(place.root().join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("d/f"), mode("d")), (0o755, 0o777));
}

#[test]
fn directories_are_closed_last() {
    let place = Place::new();
    let closed = begin().header(b'5', b"a", b"", b"0").cut();
    let mut closed = closed;
    closed[100..107].copy_from_slice(b"0000000");
    closed[148..156].copy_from_slice(b"        ");
    let sum: u32 = closed.iter().map(|byte| u32::from(*byte)).sum();
    closed[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let bytes = [closed, begin().directory("a/b").file("a/b/c", "x").end()].concat();
    // An error at the end leaves it as closed as it was meant to be.
    for bytes in [&bytes[..], &bytes[..bytes.len() - 1024]] {
        let _ = place.unpack(bytes);
        let data = fs::metadata(place.root().join("a")).unwrap();
        assert_eq!((data.mode() & 0o777, data.mtime()), (0, 1));
    }
}

#[test]
fn a_directory_is_not_replaced_by_a_file() {
    let place = Place::new();
    fs::create_dir(place.root().join("d")).unwrap();
    fs::write(place.root().join("d/f"), "").unwrap();
    for builder in [begin().file("d", "x"), begin().symbolic_link("d", "x")] {
        let error = place.unpack(&builder.end()).unwrap_err();
        assert!(matches!(error, UnpackError::System { .. }), "{error:?}");
    }
    assert_eq!(place.names(), ["d", "d/f"]);
    let error = place.unpack(&begin().file("d/f/g", "x").end()).unwrap_err();
    assert!(matches!(error, UnpackError::Through { .. }), "{error:?}");
}

#[test]
fn what_is_not_tar_is_called_by_its_name() {
    let mut gzip = vec![0x1f, 0x8b, 8, 0];
    gzip.resize(2000, 7);
    assert_eq!(refused(&gzip).to_string(), "this is gzip data, not a tar stream");
    assert_eq!(refused(&[b'x'; 600]).to_string(), "this is something else, not a tar stream");
    for short in [&b""[..], &gzip[..20]] {
        assert!(matches!(refused(short), UnpackError::Truncated));
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let limit = |bytes: &[u8]| match refused(bytes) {
        UnpackError::Limit { limit, .. } => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(&begin().header(b'0', b"a", b"", b"77777777777").end()), Limit::Bytes);
    let binary = [0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(limit(&begin().header(b'0', b"a", b"", &binary).end()), Limit::Bytes);
    for size in [u64::MAX, i64::MAX as u64, 1 << 40] {
        let bytes = begin().extended(&[("size", size.to_string().as_bytes())]).file("a", "").end();
        assert_eq!(limit(&bytes), Limit::Bytes, "{size}");
    }
    let two = begin().extended(&[("size", b"1073741824")]).file("a", "").cut();
    assert!(matches!(refused(&two), UnpackError::Truncated));
    assert_eq!(limit(&begin().header(b'x', b"a", b"", b"77777777777").end()), Limit::ExtendedHeader);
    assert_eq!(limit(&begin().header(b'L', b"a", b"", b"77777777777").end()), Limit::ExtendedHeader);
    let too_large = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let error = refused(&begin().header(b'0', b"a", b"", &too_large).end());
    assert!(matches!(error, UnpackError::Header(HeaderError::Number(Field::Size))), "{error:?}");
    let overflow = begin().extended(&[("size", b"99999999999999999999999")]).file("a", "");
    assert!(matches!(refused(&overflow.end()), UnpackError::Extended(ExtendedError::Number)));
    let sparse = begin().extended(&[("GNU.sparse.realsize", b"5")]).file("a", "");
    assert!(matches!(refused(&sparse.end()), UnpackError::Extended(ExtendedError::Sparse)));
}

#[test]
fn limits_are_kept_before_they_are_exceeded() {
    let place = Place::new();
    let within = |limits: Limits, builder: Builder| match place.unpack_within(&builder.end(), &limits) {
        Err(UnpackError::Limit { limit, .. }) => limit,
        other => panic!("{other:?}"),
    };
    let bytes = Limits { bytes: 10, ..LIMITS };
    assert_eq!(within(bytes, begin().file("a", "12345").file("b", "12345").file("c", "1")), Limit::Bytes);
    assert_eq!(place.names(), ["a", "b"]);
    let entries = Limits { entries: 2, ..LIMITS };
    assert_eq!(within(entries, begin().file("d", "").directory("e").file("f", "")), Limit::Entries);
    assert_eq!(place.names(), ["a", "b", "d", "e"]);
    let name_length = Limits { name_length: 5, ..LIMITS };
    assert_eq!(within(name_length, begin().file("123456", "")), Limit::NameLength);
    assert_eq!(within(name_length, begin().symbolic_link("l", "123456")), Limit::NameLength);
    let depth = Limits { depth: 2, ..LIMITS };
    assert_eq!(within(depth, begin().file("g/h/i", "")), Limit::Depth);
    assert_eq!(place.names(), ["a", "b", "d", "e"]);
}

/// The same header for ever.
struct Endless {
    header: Vec<u8>,
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for byte in &mut *buffer {
            *byte = self.header[self.read % self.header.len()];
            self.read += 1;
        }
        Ok(buffer.len())
    }
}

#[test]
fn an_archive_without_an_end_is_stopped() {
    let place = Place::new();
    let root = File::open(place.root()).unwrap();
    for builder in
        [begin().file("a", ""), begin().entry(b'g', b"g", b"13 comment=a\n"), begin().directory(".")]
    {
        let mut input = Endless { header: builder.cut(), read: 0 };
        let limits = Limits { entries: 50_000, ..LIMITS };
        let error = unpack(&mut input, &root, Top::Kept, &limits).unwrap_err();
        assert!(matches!(error, UnpackError::Limit { limit: Limit::Entries, .. }), "{error:?}");
        assert!(input.read < 60_000 * 1024);
    }
    let mut zeros = Endless { header: vec![0], read: 0 };
    assert!(matches!(unpack(&mut zeros, &root, Top::Kept, &LIMITS), Err(UnpackError::Trailing)));
    assert!(zeros.read < 4 << 20);
}

#[test]
fn a_million_entries_are_stopped_at_the_limit() {
    let place = Place::new();
    let mut builder = begin();
    for index in 0..1_000_000 {
        builder = builder.file(&format!("{index}"), "");
    }
    let limits = Limits { entries: 1000, ..LIMITS };
    let error = place.unpack_within(&builder.end(), &limits).unwrap_err();
    assert!(matches!(error, UnpackError::Limit { limit: Limit::Entries, .. }), "{error:?}");
    assert_eq!(place.names().len(), 1000);
}

#[test]
fn an_archive_that_is_cut_off_is_an_error_wherever_it_is_cut() {
    let bytes = begin().file("a", "12345").extended(&[("path", b"b")]).file("x", "1").end();
    for length in 0..bytes.len() - 1024 {
        assert!(matches!(refused(&bytes[..length]), UnpackError::Truncated), "{length}");
    }
    Place::new().unpack(&bytes).unwrap();
}

#[test]
fn nothing_may_follow_the_end() {
    let bytes = begin().file("a", "").end();
    assert!(matches!(refused(&[&bytes[..], b"x"].concat()), UnpackError::Trailing));
    let again = [&bytes[..], &begin().file("../canary", "x").end()].concat();
    assert!(matches!(refused(&again), UnpackError::Trailing));
    Place::new().unpack(&[&bytes[..], &[0; 10240]].concat()).unwrap();
}
