//! Archives that are packed and unpacked, and archives that an enemy made.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod builder;
mod hostile;
mod properties;
mod races;
mod roundtrip;
