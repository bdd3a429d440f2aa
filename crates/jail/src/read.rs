//! Reads small files in as few system calls as can be: the kernel writes many of its own anew for each.

use std::io;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

const ROOM: usize = 16 * 1024;

pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    pieces(path, |piece| contents.extend_from_slice(piece))?;
    Ok(contents)
}

/// Line by line, where there may be very many: memory that was used once stays with a process.
pub(crate) fn lines(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut rest = Vec::new();
    pieces(path, |piece| {
        let mut lines = piece.split(|byte| *byte == b'\n');
        let mut line = lines.next().unwrap_or_default();
        for next in lines {
            if rest.is_empty() {
                each(line);
            } else {
                rest.extend_from_slice(line);
                each(&rest);
                rest.clear();
            }
            line = next;
        }
        rest.extend_from_slice(line);
    })?;
    if !rest.is_empty() {
        each(&rest);
    }
    Ok(())
}

/// A file on a disk of about this length: from there on, what is less than there is room for is its end. A file of the
/// kernel's has no length, and may go on.
pub(crate) fn stored(path: &Path, length: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    read(path, |piece| {
        contents.extend_from_slice(piece);
        let is_all = piece.len() < ROOM && contents.len() as u64 >= length;
        if is_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(contents)
}

fn pieces(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    read(path, |piece| {
        each(piece);
        ControlFlow::Continue(())
    })
}

/// Piece by piece, to the end or for as long as more is wanted.
fn read(path: &Path, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Most files are a few bytes long: to empty all of it for each would take longer than to read them.
    let mut room = [MaybeUninit::uninit(); ROOM];
    loop {
        let (piece, _) = match rustix::io::read(&file, &mut room) {
            Err(Errno::INTR) => continue,
            read => read?,
        };
        if piece.is_empty() || each(piece).is_break() {
            return Ok(());
        }
    }
}

/// As text. A name in it that is no UTF-8 is nothing that is looked for, and spoils no other line.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(bytes(path)?);
    Ok(text.unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_file_is_read_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 1, ROOM - 1, ROOM, ROOM + 1, 2 * ROOM] {
            std::fs::write(file.path(), vec![7; length]).unwrap();
            // It may have grown, or shrunk, since it was looked at.
            for told in [0, 1, length as u64, length as u64 + 1] {
                assert_eq!(stored(file.path(), told).unwrap(), vec![7; length]);
            }
        }
    }

    #[test]
    fn lines_are_whole_wherever_a_piece_ends() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [1, 7, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM] {
            let expected: Vec<Vec<u8>> = (0..5)
                .map(|number| vec![b'a' + number; length])
                .chain([Vec::new(), b"last".to_vec()])
                .collect();
            std::fs::write(file.path(), expected.join(&b'\n')).unwrap();
            let mut seen = Vec::new();
            lines(file.path(), |line| seen.push(line.to_vec())).unwrap();
            assert!(seen == expected, "lines of {length}");
        }
    }
}
