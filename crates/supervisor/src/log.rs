//! What a process wrote, as far as it is kept: the last bytes of a stream, by their offsets from its beginning.
//! The bytes are hostile data and only ever passed on. They lie in blocks that are made as they come and go one by one,
//! so that what is held is what is kept.

use std::collections::VecDeque;

use bytes::Bytes;

/// How much of a stream is kept.
pub(crate) const CAPACITY: usize = 4 << 20;

/// How much is in one block, and so the most that is given at once. A little less than a power of two: with what the
/// allocator writes beside them, four blocks fit where a buffer was that bytes are read into, and no hole is left.
pub(crate) const BLOCK: usize = (64 << 10) - 64;

/// The end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// No block is empty, and all but the last are full.
    blocks: VecDeque<Vec<u8>>,
    /// How many bytes of the first block are not kept any more.
    gone: usize,
    /// The offset of the first byte that is kept.
    start: u64,
    /// How many bytes are kept.
    length: usize,
    /// What the blocks take.
    held: usize,
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
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    /// How much memory it holds.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Adds bytes, in the place of the oldest where there is no room.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let block = match self.blocks.back_mut() {
                Some(block) if block.len() < BLOCK => block,
                last => {
                    // The first grows as it needs to, as most processes write little.
                    let size = if last.is_some() { BLOCK } else { bytes.len().min(BLOCK) };
                    self.blocks.push_back(Vec::with_capacity(size));
                    self.held += size;
                    continue;
                }
            };
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - block.len()));
            let (before, needed) = (block.capacity(), block.len() + now.len());
            if needed > before {
                block.reserve_exact((2 * before).clamp(needed, BLOCK) - block.len());
            }
            block.extend_from_slice(now);
            self.held += block.capacity() - before;
            self.length += now.len();
            bytes = later;
            self.forget(self.length.saturating_sub(CAPACITY));
        }
    }

    /// Forgets so many of the oldest bytes, and remembers how many there were.
    pub(crate) fn forget(&mut self, count: usize) {
        let count = count.min(self.length);
        self.start += count as u64;
        self.length -= count;
        self.gone += count;
        while let Some(first) = self.blocks.front()
            && first.len() <= self.gone
        {
            self.gone -= first.len();
            self.held -= first.capacity();
            self.blocks.pop_front();
        }
    }

    /// Nothing more will come.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        if let Some(last) = self.blocks.back_mut() {
            self.held -= last.capacity();
            last.shrink_to_fit();
            self.held += last.capacity();
        }
        self.blocks.shrink_to_fit();
    }

    /// What is at an offset, or at the first one that is kept.
    pub(crate) fn at(&self, offset: u64) -> Piece {
        let skipped = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let place = skipped.saturating_add(self.gone);
        let piece = self.blocks.get(place / BLOCK).and_then(|block| block.get(place % BLOCK..));
        match piece.filter(|piece| !piece.is_empty()) {
            Some(piece) => {
                let end = offset.max(self.start) + piece.len() as u64;
                Piece::Bytes(Bytes::copy_from_slice(piece), end)
            }
            None if self.finished => Piece::Finished,
            None => Piece::NotYet,
        }
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

    fn held(log: &Log) -> usize {
        log.blocks.iter().map(Vec::capacity).sum()
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
    fn what_is_forgotten_is_remembered_by_its_length_and_held_no_more() {
        let mut log = Log::default();
        log.push(b"gone");
        log.finish();
        log.forget(usize::MAX);
        assert_eq!((log.start(), log.end(), log.held(), log.at(0)), (4, 4, 0, Piece::Finished));
    }

    #[test]
    fn little_takes_little() {
        let mut log = Log::default();
        log.push(b"a line\n");
        assert!(log.held() < 64, "{}", log.held());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_last_bytes_are_kept_and_no_more(
            sizes in proptest::collection::vec((1usize..3 * CAPACITY / 2, 0usize..CAPACITY), 1..6),
            offset in 0u64..1 << 24,
        ) {
            let mut log = Log::default();
            let mut all = Vec::new();
            let mut forgotten = 0;
            for (number, (size, forget)) in sizes.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|at| (at as u8).wrapping_mul(31).wrapping_add(number as u8)).collect();
                log.push(&bytes);
                all.extend_from_slice(&bytes);
                let kept = (all.len() - forgotten).min(CAPACITY);
                forgotten = all.len() - kept;
                prop_assert_eq!(log.start(), forgotten as u64);
                log.forget(*forget);
                forgotten += (*forget).min(kept);
                prop_assert_eq!(log.held(), held(&log));
                prop_assert!(log.held() <= CAPACITY + 2 * BLOCK);
                prop_assert!(log.held() < kept - (*forget).min(kept) + 2 * BLOCK);
            }
            prop_assert_eq!(log.end(), all.len() as u64);
            prop_assert_eq!(log.start(), forgotten as u64);
            let first = offset.max(log.start()).min(log.end()) as usize;
            prop_assert_eq!(read_from(&log, offset), &all[first..]);
            log.finish();
            prop_assert_eq!(log.held(), held(&log));
        }
    }
}
