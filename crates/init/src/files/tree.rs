//! Files and trees as archives, out and in. What is put into an archive, and where one may lead, is decided in
//! `archive`; here its words become those of the replies.

use std::error::Error;
use std::os::fd::AsFd;

use archive::{Limits, Output, PackError, Remark, Top, UnpackError, Why};
use bytes::Bytes;
use rustix::fs::OFlags;
use wire::{FileAnswer, FileCode, FileDone, FileSkipped, PackTree, SkippedWhy, UnpackTree};

use super::failure::Failure;
use super::{Streams, opening};

/// What is unpacked inside is bounded by what the sandbox may hold, and by these.
const LIMITS: Limits = Limits { bytes: u64::MAX, entries: 10_000_000, name_length: 4095, depth: 256 };

/// A file or a tree, to stdout.
pub(super) fn pack(ask: &PackTree, streams: &mut Streams) -> Result<FileDone, Failure> {
    let (directory, name) = split(&ask.path);
    let directory = opening::directory(directory, OFlags::PATH)?;
    let mut told = Ok(());
    let Streams { output, replies, .. } = streams;
    let mut remark = |remark: Remark<'_>| {
        if told.is_ok() {
            told = replies.send(FileAnswer::Skipped(skipped(remark)));
        }
    };
    let packed = archive::pack(directory, name, Output::Pipe(output.as_fd()), &mut remark);
    let packed = packed.map_err(|error| pack_failure(&ask.path, &error))?;
    told?;
    Ok(FileDone { bytes: packed.bytes, entries: packed.entries, more: false })
}

/// The directory to begin in, and what is packed there. What ends with a slash or a dot is a directory whose name is
/// of no interest, and is packed as what is in it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (directory, name) = match slash {
        Some(0) => (&path[..1], &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    if matches!(name, b"" | b"." | b"..") { (path, b".") } else { (directory, name) }
}

fn skipped(remark: Remark<'_>) -> FileSkipped {
    let (why, errno) = match remark.why {
        Why::Fifo => (SkippedWhy::Fifo, 0),
        Why::Socket => (SkippedWhy::Socket, 0),
        Why::Device => (SkippedWhy::Device, 0),
        Why::Vanished => (SkippedWhy::Vanished, 0),
        Why::Unreadable(errno) => (SkippedWhy::Unreadable, errno.raw_os_error()),
        Why::TooDeep => (SkippedWhy::TooDeep, 0),
        Why::Shrank => (SkippedWhy::Shrank, 0),
        Why::Grew => (SkippedWhy::Grew, 0),
    };
    FileSkipped { path: Bytes::copy_from_slice(remark.path), why: why.into(), errno }
}

fn pack_failure(path: &[u8], error: &PackError) -> Failure {
    match error {
        PackError::System { errno, .. } => Failure::system(path, *errno),
        PackError::Output(error) => Failure::stream(b"", error),
        PackError::Name { .. } | PackError::Special { .. } => Failure::new(FileCode::Refused, path),
    }
    .with_detail(&words(error))
}

/// The archive on stdin, or wherever it is said to come, into a directory.
pub(super) fn unpack(ask: &UnpackTree, streams: &mut Streams) -> Result<FileDone, Failure> {
    let directory = opening::directory(&ask.path, OFlags::PATH)?;
    let top = if ask.top.is_empty() { Top::Kept } else { Top::Named(&ask.top) };
    let archive = if ask.by_output { &streams.output } else { &streams.input };
    let unpacked = archive::unpack_pipe(archive, directory, top, &LIMITS);
    let unpacked = unpacked.map_err(|error| unpack_failure(&error))?;
    Ok(FileDone { bytes: unpacked.bytes, entries: unpacked.entries, more: false })
}

fn unpack_failure(error: &UnpackError) -> Failure {
    match error {
        UnpackError::Input(error) => Failure::stream(b"", error),
        UnpackError::System { name, errno, .. } => Failure::system(name, *errno),
        UnpackError::Limit { name, .. } => Failure::new(FileCode::TooLarge, name),
        UnpackError::Changed { name } => Failure::new(FileCode::Changed, name),
        UnpackError::Through { name } => Failure::new(FileCode::NotDirectory, name),
        UnpackError::Name { name, .. }
        | UnpackError::Special { name, .. }
        | UnpackError::ForeignLink { name, .. } => Failure::new(FileCode::Refused, name),
        UnpackError::NotTar(_)
        | UnpackError::Truncated
        | UnpackError::Trailing
        | UnpackError::Header(_)
        | UnpackError::Extended(_) => Failure::new(FileCode::Refused, b""),
    }
    .with_detail(&words(error))
}

/// An error with its cause.
fn words(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_their_name_begins() {
        for (path, directory, name) in [
            ("/a/b", "/a", "b"),
            ("/a", "/", "a"),
            ("a", ".", "a"),
            ("a/b/", "a/b/", "."),
            ("/", "/", "."),
            (".", ".", "."),
            ("a/..", "a/..", "."),
            ("/a/--", "/a", "--"),
        ] {
            assert_eq!(split(path.as_bytes()), (directory.as_bytes(), name.as_bytes()), "{path}");
        }
    }
}
