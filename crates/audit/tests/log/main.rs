//! The log as a whole: written, cut off, killed, changed by somebody, read beside its writer, removed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod crash;
mod expiry;
mod harness;
mod reading;
mod tampering;
mod turns;
mod writing;
