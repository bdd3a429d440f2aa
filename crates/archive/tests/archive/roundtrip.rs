//! What is packed comes out as it was, here and through the system's own tar.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use archive::{Output, PackError, Packed, Remark, Top, UnpackError, Unpacked, Why, pack, unpack};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};

use crate::builder::{Builder, LIMITS, Place, look};

fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A tree of everything that an archive can carry.
fn fill(root: &Path) {
    let tree = root.join("tree");
    let long = tree.join("d".repeat(200)).join("e".repeat(200));
    fs::create_dir_all(&long).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::write(tree.join("empty file"), "").unwrap();
    fs::write(tree.join("script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(tree.join("script"), PermissionsExt::from_mode(0o751)).unwrap();
    fs::write(tree.join("block"), [7; 512]).unwrap();
    fs::write(tree.join("large"), vec![8; 700_001]).unwrap();
    fs::write(long.join("f".repeat(200)), "long").unwrap();
    fs::write(tree.join(OsStr::from_bytes(b"\xff\xfe\n-- '")), "strange").unwrap();
    fs::write(long.join(OsStr::from_bytes(&[0xff; 200])), "strange and long").unwrap();
    fs::hard_link(tree.join("script"), tree.join("empty/second name")).unwrap();
    symlink("../canary", tree.join("link")).unwrap();
    symlink("/x".repeat(300), tree.join("long link")).unwrap();
    set_time(&tree.join("link"), 5, 0);
    set_time(&tree.join("block"), -5, 250_000_000);
    set_time(&tree.join("large"), 1_700_000_000, 123_456_789);
    fs::set_permissions(tree.join("empty"), PermissionsExt::from_mode(0o500)).unwrap();
    set_time(&tree.join("empty"), 1_600_000_000, 1);
}

fn packed(directory: &Path, name: &str) -> (Vec<u8>, Packed, Vec<(String, Why)>) {
    let mut bytes = Vec::new();
    let mut remarks = Vec::new();
    let mut remark = |Remark { path, why }: Remark<'_>| {
        remarks.push((String::from_utf8_lossy(path).into_owned(), why));
    };
    let packed =
        pack(File::open(directory).unwrap(), name.as_bytes(), Output::Writer(&mut bytes), &mut remark)
            .unwrap();
    (bytes, packed, remarks)
}

#[test]
fn a_tree_comes_out_as_it_was() {
    let (from, to) = (Place::new(), Place::new());
    fill(&from.root());
    let (bytes, packed, remarks) = packed(&from.root(), "tree");
    assert_eq!(remarks, []);
    let unpacked = to.unpack(&bytes).unwrap();
    assert_eq!((unpacked.entries, unpacked.bytes), (packed.entries, packed.bytes));
    assert_eq!(look(&to.root()), look(&from.root()));
    // And once more over what is there.
    to.unpack(&bytes).unwrap();
    assert_eq!(look(&to.root()), look(&from.root()));
}

#[test]
fn the_systems_tar_reads_what_we_pack() {
    let (from, to) = (Place::new(), Place::new());
    fill(&from.root());
    let (bytes, _, _) = packed(&from.root(), "tree");
    let mut tar =
        Command::new("tar").args(["-xpf", "-"]).current_dir(to.root()).stdin(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(tar.wait().unwrap().success());
    assert_eq!(look(&to.root()), look(&from.root()));
}

#[test]
fn we_read_what_the_systems_tar_packs() {
    for format in ["gnu", "pax", "posix"] {
        let (from, to) = (Place::new(), Place::new());
        fill(&from.root());
        let mut tar = Command::new("tar");
        tar.arg(format!("--format={format}")).args(["-cf", "-", "./tree"]).current_dir(from.root());
        let output = tar.output().unwrap();
        assert!(output.status.success());
        to.unpack(&output.stdout).unwrap();
        let (mut ours, mut theirs) = (look(&to.root()), look(&from.root()));
        if format == "gnu" {
            // It has no place for parts of a second.
            ours.values_mut().chain(theirs.values_mut()).for_each(|seen| seen.modified.1 = 0);
        }
        assert_eq!(ours, theirs, "{format}");
    }
}

#[test]
fn one_file_or_link_is_an_archive_too() {
    let (from, to) = (Place::new(), Place::new());
    fill(&from.root());
    for name in ["tree/script", "tree/link", "tree/empty/second name"] {
        to.unpack(&packed(&from.root(), name).0).unwrap();
    }
    assert_eq!(to.names(), ["link", "script", "second name"]);
    assert_eq!(fs::read_link(to.root().join("link")).unwrap(), Path::new("../canary"));
}

#[test]
fn a_directory_itself_has_no_name() {
    let (from, to) = (Place::new(), Place::new());
    fs::create_dir(from.root().join("a")).unwrap();
    fs::write(from.root().join("a/b"), "b").unwrap();
    let (bytes, packed, _) = packed(&from.root(), ".");
    assert_eq!(packed, Packed { entries: 2, bytes: 1 });
    to.unpack(&bytes).unwrap();
    assert_eq!(to.names(), ["a", "a/b"]);
}

#[test]
fn a_top_that_is_named_is_the_only_thing_touched() {
    let place = Place::new();
    fs::write(place.root().join("other"), "other").unwrap();
    let bytes = Builder::default()
        .directory("tree")
        .file("tree/a", "a")
        .hard_link("tree/b", "tree/a")
        .file("other", "x");
    let root = File::open(place.root()).unwrap();
    // Two tops become one, and a directory is not replaced by a file.
    assert!(unpack(&bytes.clone().end()[..], &root, Top::Named(b"new"), &LIMITS).is_err());
    assert_eq!(place.names(), ["new", "new/a", "new/b", "other"]);
    assert_eq!(fs::read(place.root().join("other")).unwrap(), b"other");
    for wrong in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
        assert!(unpack(&bytes.clone().end()[..], &root, Top::Named(wrong), &LIMITS).is_err());
    }
    assert_eq!(place.names(), ["new", "new/a", "new/b", "other"]);
}

#[test]
fn what_is_no_file_is_left_out_and_named() {
    let from = Place::new();
    let tree = from.root().join("tree");
    fs::create_dir(&tree).unwrap();
    assert!(Command::new("mkfifo").arg(tree.join("fifo")).status().unwrap().success());
    let _listener = UnixListener::bind(tree.join("socket")).unwrap();
    fs::write(tree.join("file"), "").unwrap();
    let (bytes, packed_tree, mut remarks) = packed(&from.root(), "tree");
    remarks.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(remarks, [("tree/fifo".into(), Why::Fifo), ("tree/socket".into(), Why::Socket)]);
    assert_eq!(packed_tree.entries, 2);
    let to = Place::new();
    to.unpack(&bytes).unwrap();
    assert_eq!(to.names(), ["tree", "tree/file"]);
    let (_, _, remarks) = packed(Path::new("/dev"), ".");
    assert!(remarks.contains(&("null".into(), Why::Device)), "{remarks:?}");
    for (directory, name) in
        [(tree.as_path(), "fifo"), (tree.as_path(), "socket"), (Path::new("/dev"), "null")]
    {
        let error = pack(
            File::open(directory).unwrap(),
            name.as_bytes(),
            Output::Writer(&mut Vec::new()),
            &mut |_| {},
        )
        .unwrap_err();
        assert!(matches!(error, PackError::Special { .. }), "{error}");
    }
}

#[test]
fn packing_stays_beneath_its_directory() {
    let from = Place::new();
    symlink("../outside", from.root().join("link")).unwrap();
    for name in ["../canary", "/etc/passwd", "link/secret", "", "missing", "link/../../canary"] {
        let packed = pack(
            File::open(from.root()).unwrap(),
            name.as_bytes(),
            Output::Writer(&mut Vec::new()),
            &mut |_| {},
        );
        assert!(packed.is_err(), "{name}");
    }
}

#[test]
fn a_file_that_changes_keeps_the_size_it_was_announced_with() {
    // The kernel says that these are empty, and they are not.
    let (bytes, packed, remarks) = packed(Path::new("/proc/self"), "status");
    assert_eq!((packed.bytes, remarks), (0, vec![("status".into(), Why::Grew)]));
    let to = Place::new();
    to.unpack(&bytes).unwrap();
    assert_eq!(fs::metadata(to.root().join("status")).unwrap().size(), 0);
}

/// Cuts a file as soon as something of it has been written.
struct Cutting {
    file: File,
    written: Vec<u8>,
}

impl Write for Cutting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.set_len(10)?;
        self.written.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_is_cut_is_filled_with_zeros() {
    let (from, to) = (Place::new(), Place::new());
    let path = from.root().join("file");
    fs::write(&path, vec![1; 1_000_000]).unwrap();
    let mut output = Cutting { file: File::options().write(true).open(&path).unwrap(), written: Vec::new() };
    let mut remarks = Vec::new();
    let packed =
        pack(File::open(from.root()).unwrap(), b"file", Output::Writer(&mut output), &mut |remark| {
            remarks.push(remark.why)
        })
        .unwrap();
    assert_eq!((packed.bytes, remarks), (1_000_000, vec![Why::Shrank]));
    to.unpack(&output.written).unwrap();
    let contents = fs::read(to.root().join("file")).unwrap();
    assert_eq!(contents.len(), 1_000_000);
    assert_eq!((contents[0], contents[999_999]), (1, 0));
}

#[test]
fn a_tree_without_a_bottom_ends() {
    let from = Place::new();
    let mut directory =
        rustix::fs::open(from.root(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..400 {
        rustix::fs::mkdirat(&directory, "d", rustix::fs::Mode::RWXU).unwrap();
        directory =
            rustix::fs::openat(&directory, "d", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    }
    let (bytes, packed, remarks) = packed(&from.root(), "d");
    assert_eq!((packed.entries, remarks.len(), remarks[0].1), (256, 1, Why::TooDeep));
    Place::new().unpack(&bytes).unwrap();
}

/// Packs into a pipe and unpacks out of it, up to so many bytes.
fn through_a_pipe(from: &Place, to: &Place, most: u64) -> Result<Unpacked, UnpackError> {
    let (reader, writer) = std::io::pipe().unwrap();
    let root = File::open(from.root()).unwrap();
    // That its reader has gone is the end of it, too.
    let packing =
        std::thread::spawn(move || drop(pack(root, b"tree", Output::Pipe(writer.as_fd()), &mut |_| {})));
    let unpacked = unpack(
        File::from(OwnedFd::from(reader)).take(most),
        File::open(to.root()).unwrap(),
        Top::Kept,
        &LIMITS,
    );
    packing.join().unwrap();
    unpacked
}

#[test]
fn a_tree_goes_through_a_pipe_as_it_was() {
    // Onto a disk and into memory the bytes go in two ways.
    for directory in [std::env::temp_dir(), "/dev/shm".into()] {
        let (from, to) = (Place::within(&directory), Place::within(&directory));
        fill(&from.root());
        // Large enough to be left to the kernel, and not a multiple of anything.
        let noise: Vec<u8> =
            (0..5_000_001_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(from.root().join("tree/larger"), noise).unwrap();
        through_a_pipe(&from, &to, u64::MAX).unwrap();
        assert_eq!(look(&to.root()), look(&from.root()));
        let cut = through_a_pipe(&from, &to, 3_000_000);
        assert!(matches!(cut, Err(UnpackError::Truncated)), "{cut:?}");
    }
}

#[test]
fn a_reader_that_goes_ends_packing() {
    let from = Place::new();
    fs::write(from.root().join("file"), vec![1; 5_000_000]).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let packed = pack(File::open(from.root()).unwrap(), b"file", Output::Pipe(writer.as_fd()), &mut |_| {});
    assert!(matches!(packed, Err(PackError::Output(_))), "{packed:?}");
}
