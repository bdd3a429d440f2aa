//! What all streams of a sandbox hold together is bounded: a sandbox may have hundreds of processes, and each may write
//! without end. Where there is no room left, what is needed least goes first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::log::BLOCK;
use crate::stream::Stream;

/// What all streams hold together.
const LIMIT: usize = 64 << 20;

/// How much more than is needed those give that are over, so that it is not looked for again at the next byte.
const MORE: usize = 1 << 20;

/// All streams of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    held: AtomicUsize,
    /// The oldest first.
    streams: Mutex<Vec<Weak<Stream>>>,
}

/// What a stream could do without, and what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    /// How many bytes nobody waits for.
    pub(crate) bytes: usize,
    pub(crate) is_finished: bool,
    pub(crate) is_viewed: bool,
}

impl Shelf {
    /// Nothing that could break is ever half done under this lock, so poison is ignored.
    fn streams(&self) -> MutexGuard<'_, Vec<Weak<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a stream in.
    pub(crate) fn add(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams();
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(Arc::downgrade(stream));
    }

    /// A stream holds another amount now.
    pub(crate) fn account(&self, before: usize, now: usize) {
        // Each subtracts no more than it has added.
        self.held.fetch_add(now, Ordering::Relaxed);
        self.held.fetch_sub(before, Ordering::Relaxed);
    }

    fn excess(&self, more: usize) -> usize {
        (self.held.load(Ordering::Relaxed) + more).saturating_sub(LIMIT)
    }

    /// Whether there is room for so much more, after all was forgotten that can be: first what those wrote that are over,
    /// the oldest first, then of the largest that nobody views, at last what all viewers of one have seen. What a viewer
    /// has not seen stays.
    pub(crate) fn make_room(&self, more: usize) -> bool {
        if self.excess(more) == 0 {
            return true;
        }
        let streams: Vec<Arc<Stream>> = self.streams().iter().filter_map(Weak::upgrade).collect();
        for stream in streams.iter().filter(|stream| stream.spare().is_finished) {
            stream.forget(self.excess(more) + MORE);
            if self.excess(more) == 0 {
                return true;
            }
        }
        // A quarter of the largest at a time, so that no stream is emptied for others.
        loop {
            let spares = streams.iter().map(|stream| (stream.spare(), stream));
            let largest = spares.max_by_key(|(spare, _)| (spare.bytes > 0, !spare.is_viewed, spare.bytes));
            let Some((spare, stream)) = largest.filter(|(spare, _)| spare.bytes > 0) else { return false };
            stream.forget((spare.bytes / 4).max(BLOCK));
            if self.excess(more) == 0 {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::CAPACITY;

    fn streams(shelf: &Arc<Shelf>, count: usize) -> Vec<Arc<Stream>> {
        (0..count).map(|_| Stream::new(shelf, None)).collect()
    }

    /// What `fill` does with bytes that come in.
    fn write(shelf: &Shelf, stream: &Stream, size: usize) -> bool {
        let room = shelf.make_room(size);
        stream.push(&vec![b'x'; size]);
        room
    }

    fn held(shelf: &Shelf) -> usize {
        shelf.held.load(Ordering::Relaxed)
    }

    #[test]
    fn many_streams_hold_no_more_than_the_limit() {
        let shelf = Arc::new(Shelf::default());
        let all = streams(&shelf, 300);
        for _ in 0..12 {
            for stream in &all {
                assert!(write(&shelf, stream, 50_000));
                assert!(held(&shelf) <= LIMIT + 2 * BLOCK, "{}", held(&shelf));
            }
        }
        assert_eq!(held(&shelf), all.iter().map(|stream| stream.size()).sum::<usize>());
        assert!(all.iter().all(|stream| stream.size() > 0));
        drop(all);
        assert_eq!(held(&shelf), 0);
    }

    /// So much that sixteen of them fit.
    const LARGE: usize = CAPACITY - (256 << 10);

    #[test]
    fn those_that_are_over_go_first_the_oldest_first() {
        let shelf = Arc::new(Shelf::default());
        let all = streams(&shelf, 16);
        for stream in &all {
            assert!(write(&shelf, stream, LARGE));
        }
        all[5].finish();
        all[9].finish();
        let more = streams(&shelf, 2);
        assert!(more.iter().all(|stream| write(&shelf, stream, CAPACITY / 2)));
        assert!(all[5].spare().bytes < LARGE, "the oldest that is over is whole");
        assert!((0..16).all(|index| index == 5 || all[index].spare().bytes == LARGE));
    }

    #[test]
    fn the_largest_that_nobody_views_goes_next() {
        let shelf = Arc::new(Shelf::default());
        let all = streams(&shelf, 17);
        let viewer = all[0].view(0);
        assert!(write(&shelf, &all[0], LARGE + 3));
        assert!(write(&shelf, &all[7], LARGE + 2));
        for stream in all[1..16].iter().filter(|stream| stream.spare().bytes == 0) {
            assert!(write(&shelf, stream, LARGE));
        }
        assert!(write(&shelf, &all[16], CAPACITY));
        assert!(all[7].spare().bytes < LARGE, "the largest is whole");
        assert!(all[0].spare().bytes == 0 && all[0].size() > LARGE, "what a viewer has not seen is gone");
        drop(viewer);
        assert_eq!(all[0].spare().bytes, LARGE + 3);
    }

    #[test]
    fn what_viewers_wait_for_is_never_made_room_of() {
        let shelf = Arc::new(Shelf::default());
        let all = streams(&shelf, 17);
        let viewers: Vec<_> = all.iter().map(|stream| stream.view(0)).collect();
        for stream in &all[..16] {
            write(&shelf, stream, CAPACITY);
        }
        assert!(!write(&shelf, &all[16], 1 << 10));
        assert!(all[..16].iter().all(|stream| stream.size() >= CAPACITY));
        drop(viewers);
        assert!(shelf.make_room(1 << 10));
    }
}
