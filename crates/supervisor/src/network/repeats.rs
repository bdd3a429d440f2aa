//! What happens again and again is put on record the first time, and then from time to time with how often it was.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The most different things that are remembered.
const MOST: usize = 4096;

/// How long it takes until it is looked again what can be forgotten.
const NOT_SO_OFTEN: Duration = Duration::from_secs(1);

/// How often each happened since it was last on record, and when that was.
#[derive(Debug)]
pub(super) struct Repeats<Key> {
    since: HashMap<Key, Repeat>,
    /// When something was last forgotten.
    forgot: Instant,
}

/// What is to be done about something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is to be put on record, as often as this.
    Now(u64),
    /// It is counted, and on record later.
    Later,
    /// There are too many different things for each to be remembered.
    TooMany,
}

#[derive(Clone, Copy, Debug)]
struct Repeat {
    recorded: Instant,
    times: u64,
}

impl<Key> Default for Repeats<Key> {
    fn default() -> Self {
        Self { since: HashMap::new(), forgot: Instant::now() }
    }
}

impl<Key: Clone + Eq + Hash> Repeats<Key> {
    /// It happened.
    pub(super) fn note(&mut self, key: &Key, now: Instant, again: Duration) -> Noted {
        if let Some(repeat) = self.since.get_mut(key) {
            repeat.times += 1;
            if now.saturating_duration_since(repeat.recorded) < again {
                return Noted::Later;
            }
            repeat.recorded = now;
            return Noted::Now(std::mem::take(&mut repeat.times));
        }
        if self.since.len() >= MOST && now.saturating_duration_since(self.forgot) >= NOT_SO_OFTEN {
            // What nobody repeats is forgotten.
            self.forgot = now;
            self.since.retain(|_, repeat| {
                repeat.times > 0 || now.saturating_duration_since(repeat.recorded) < again
            });
        }
        if self.since.len() >= MOST {
            return Noted::TooMany;
        }
        self.since.insert(key.clone(), Repeat { recorded: now, times: 0 });
        Noted::Now(1)
    }

    /// What is not on record yet, for the last time.
    pub(super) fn settle(&mut self) -> Vec<(Key, u64)> {
        let all = std::mem::take(&mut self.since).into_iter();
        all.filter(|(_, repeat)| repeat.times > 0).map(|(key, repeat)| (key, repeat.times)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_repeated_is_counted() {
        let start = Instant::now();
        let mut repeats = Repeats::default();
        let mut note =
            |key: &str, after| repeats.note(&key.to_owned(), start + Duration::from_secs(after), AGAIN);
        assert_eq!(note("one", 0), Noted::Now(1));
        assert_eq!(
            (note("one", 1), note("one", 59), note("two", 59)),
            (Noted::Later, Noted::Later, Noted::Now(1))
        );
        assert_eq!(note("one", 60), Noted::Now(3));
        assert_eq!((note("one", 61), note("one", 62)), (Noted::Later, Noted::Later));
        assert_eq!(repeats.settle(), [("one".to_owned(), 2)]);
        assert_eq!(repeats.settle(), []);
    }

    #[test]
    fn not_everything_is_remembered() {
        let start = Instant::now();
        let mut repeats = Repeats::default();
        for number in 0..2 * MOST {
            let expected = if number < MOST { Noted::Now(1) } else { Noted::TooMany };
            assert_eq!(repeats.note(&number, start, AGAIN), expected);
        }
        assert_eq!(repeats.since.len(), MOST);
        assert_eq!(repeats.note(&(2 * MOST), start + AGAIN, AGAIN), Noted::Now(1));
        assert_eq!(repeats.since.len(), 1);
    }
}
