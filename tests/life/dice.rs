//! Chance that can be had again: the seed is printed, and AGENTBOX_TEST_SEED sets it.

use std::io::Write as _;
use std::time::Duration;

/// Random numbers, by xorshift: good enough to hit a process at any moment of its life.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// New ones; `what` is printed beside the seed.
    pub(crate) fn throw(what: &str) -> Self {
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

    /// Less than `longest`.
    pub(crate) fn delay(&mut self, longest: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let longest = u64::try_from(longest.as_micros()).unwrap();
        Duration::from_micros(self.0 % longest)
    }
}
