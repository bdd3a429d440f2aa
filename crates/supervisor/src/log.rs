//! What a process wrote, as far as it is kept: the last bytes of a stream, by their offsets from its beginning.
//! The bytes are hostile data and only ever passed on.

use std::collections::VecDeque;

use bytes::Bytes;

/// How much of a stream is kept.
pub(crate) const CAPACITY: usize = 4 << 20;

/// The most that is given at once.
const LARGEST_PIECE: usize = 256 << 10;

/// The end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<u8>,
    /// The offset of the first byte that is kept.
    start: u64,
    finished: bool,
}

/// What a log has at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Some bytes, and the offset behind them.
    Bytes(Bytes, u64),
    /// Nothing yet.
    NotYet,
    /// Nothing ever.
    Finished,
}

impl Log {
    /// The offset of the first byte that is kept.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// What it holds.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Adds bytes, in the place of the oldest where there is no room.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let over = (self.kept.len() + bytes.len()).saturating_sub(CAPACITY);
        let dropped = over.min(self.kept.len());
        self.kept.drain(..dropped);
        // More than all that is kept: only its end is.
        let skipped = over - dropped;
        self.kept.extend(&bytes[skipped..]);
        self.start += over as u64;
    }

    /// Nothing more will come.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        self.kept.shrink_to_fit();
    }

    /// Forgets the bytes, and remembers how many there were.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.kept = VecDeque::new();
    }

    /// What is at an offset, or at the first one that is kept.
    pub(crate) fn at(&self, offset: u64) -> Piece {
        let skipped = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let (first, second) = self.kept.as_slices();
        let piece = match first.get(skipped..).filter(|piece| !piece.is_empty()) {
            Some(piece) => piece,
            None => second.get(skipped.saturating_sub(first.len())..).unwrap_or_default(),
        };
        if piece.is_empty() {
            return if self.finished { Piece::Finished } else { Piece::NotYet };
        }
        let piece = &piece[..piece.len().min(LARGEST_PIECE)];
        let end = offset.max(self.start) + piece.len() as u64;
        Piece::Bytes(Bytes::copy_from_slice(piece), end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_from(log: &Log, mut offset: u64) -> Vec<u8> {
        let mut read = Vec::new();
        while let Piece::Bytes(bytes, end) = log.at(offset) {
            read.extend_from_slice(&bytes);
            offset = end;
        }
        read
    }

    #[test]
    fn what_is_kept_is_read_from_any_offset() {
        let mut log = Log::default();
        log.push(b"hello ");
        log.push(b"world");
        assert_eq!(read_from(&log, 0), b"hello world");
        assert_eq!(read_from(&log, 6), b"world");
        assert_eq!(log.at(11), Piece::NotYet);
        assert_eq!(log.at(u64::MAX), Piece::NotYet);
        log.finish();
        assert_eq!(log.at(11), Piece::Finished);
    }

    #[test]
    fn a_cleared_log_remembers_its_length() {
        let mut log = Log::default();
        log.push(b"gone");
        log.finish();
        log.clear();
        assert_eq!((log.start(), log.end(), log.at(0)), (4, 4, Piece::Finished));
    }

    proptest! {
        #[test]
        fn the_last_bytes_are_kept_and_no_more(
            sizes in proptest::collection::vec(1usize..3 * CAPACITY / 2, 1..6),
            offset in 0u64..1 << 24,
        ) {
            let mut log = Log::default();
            let mut all = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|at| (at as u8).wrapping_mul(31).wrapping_add(number as u8)).collect();
                log.push(&bytes);
                all.extend_from_slice(&bytes);
            }
            prop_assert!(log.len() <= CAPACITY);
            prop_assert_eq!(log.end(), all.len() as u64);
            let first = offset.max(log.start()).min(log.end()) as usize;
            prop_assert_eq!(read_from(&log, offset), &all[first..]);
        }
    }
}
