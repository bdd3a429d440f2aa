//! Archives that are packed and unpacked, and archives that an enemy made.

mod builder;
mod hostile;
mod properties;
mod races;
mod roundtrip;
