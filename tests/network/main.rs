//! The network suite: what leaves the host, seen from the other side. Its first part shows that the other side sees.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod addresses;
mod clients;
mod configured;
mod fixture;
mod flood;
mod git;
mod inside;
mod led;
mod lists;
mod malformed;
mod names;
mod neighbours;
mod policies;
mod proxy;
mod questions;
mod remains;
mod requests;
mod resolvers;
mod services;
mod speech;
mod unruled;
mod upstream;
mod walls;
