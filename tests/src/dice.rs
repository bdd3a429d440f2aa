//! Chance that can be had again: the seed is printed, and AGENTBOX_TEST_SEED sets it.

use std::io::Write as _;
use std::time::Duration;

/// Random numbers, by xorshift: good enough to hit a process at any moment of its life.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// New ones; `what` is printed beside the seed.
    #[must_use]
    pub fn throw(what: &str) -> Self {
        let given = std::env::var("AGENTBOX_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
            u64::from_le_bytes(bytes)
        });
        // Not by the test runner's own output: the seed is wanted most when a test hangs.
        let _ = writeln!(std::io::stderr(), "{what}: AGENTBOX_TEST_SEED={seed}");
        Self(seed | 1)
    }

    /// Further ones for another thread, whose numbers depend on these alone.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.next() | 1)
    }

    /// One of these.
    pub fn pick<'all, T>(&mut self, all: &'all [T]) -> &'all T {
        let count = u64::try_from(all.len()).unwrap();
        &all[usize::try_from(self.next() % count).unwrap()]
    }

    /// Less than `longest`.
    pub fn delay(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_micros()).unwrap();
        Duration::from_micros(self.next() % longest)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The low bits of such numbers repeat soon.
        self.0 >> 8
    }
}
