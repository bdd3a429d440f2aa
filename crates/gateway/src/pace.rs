//! How much goes one way in a second, where the policy says so. Whoever has moved bytes is in debt for the time that they
//! should have taken, with all others of the same sandbox; when that is over, it is the turn of who has waited longest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How much of a debt is not waited for: a moment's pause is forgiven, and timers are not exact.
const FORGIVEN: Duration = Duration::from_millis(20);

/// How long is slept at a time: the policy may have changed by then.
const NAP: Duration = Duration::from_millis(500);

/// The share of a second's bytes that is moved at a time, so that it goes evenly and all get some.
const SHARE: u64 = 16;

/// The least that is moved at a time.
const LEAST: usize = 1024;

/// The pace of one direction.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes a second; zero where there is no limit.
    rate: AtomicU64,
    /// When the debt of what has been moved is over.
    due: Mutex<Instant>,
    /// Held by the one who waits for that; the others wait behind, in the order in which they came.
    turn: tokio::sync::Mutex<()>,
}

impl Pace {
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self {
            rate: AtomicU64::new(rate.unwrap_or(0)),
            due: Mutex::new(Instant::now()),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// From now on so much; debts are forgotten.
    pub(crate) fn set(&self, rate: Option<u64>) {
        self.rate.store(rate.unwrap_or(0), Ordering::Relaxed);
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether there is a limit.
    pub(crate) fn is_set(&self) -> bool {
        self.rate.load(Ordering::Relaxed) != 0
    }

    /// How much to move at a time, and no more than this.
    pub(crate) fn piece(&self, most: usize) -> usize {
        match self.rate.load(Ordering::Relaxed) {
            0 => most,
            rate => usize::try_from(rate / SHARE).unwrap_or(most).max(LEAST).min(most),
        }
    }

    /// So many bytes have been moved.
    pub(crate) fn spend(&self, count: usize) {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let time = Duration::from_secs_f64(count as f64 / rate as f64);
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        *due = (*due).max(Instant::now()) + time;
    }

    /// Waits until more may be moved. Whoever moves something has to say so before it waits for anything else.
    pub(crate) async fn clear(&self) {
        let _turn = self.turn.lock().await;
        while self.is_set() {
            let due = *self.due.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if due <= now + FORGIVEN {
                return;
            }
            sleep_until(due.min(now + NAP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it takes to move so much, in pieces.
    async fn time(pace: &Pace, mut bytes: usize) -> Duration {
        let start = Instant::now();
        while bytes > 0 {
            pace.clear().await;
            let piece = pace.piece(256 * 1024).min(bytes);
            pace.spend(piece);
            bytes -= piece;
        }
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn so_much_goes_in_a_second() {
        let pace = Pace::new(Some(100_000));
        let took = time(&pace, 1_000_000).await.as_secs_f64();
        assert!((9.8..10.2).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn all_get_their_share() {
        let pace = Pace::new(Some(100_000));
        let (much, little, other) =
            tokio::join!(time(&pace, 800_000), time(&pace, 100_000), time(&pace, 100_000));
        let took = much.as_secs_f64();
        assert!((9.8..10.4).contains(&took), "{took}");
        // Those who want little are not held up by the one who always wants more.
        for took in [little, other].map(|took| took.as_secs_f64()) {
            assert!((2.5..3.5).contains(&took), "{took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_one_nobody_waits_and_a_debt_ends_with_it() {
        assert_eq!(time(&Pace::new(None), 1 << 30).await, Duration::ZERO);
        let pace = Pace::new(Some(1000));
        pace.spend(1_000_000);
        let waiting = tokio::time::timeout(Duration::from_secs(5), pace.clear()).await;
        assert!(waiting.is_err());
        pace.set(None);
        assert_eq!(time(&pace, 1 << 30).await, Duration::ZERO);
    }
}
