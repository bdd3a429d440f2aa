//! What the command line promises: exit codes, streams, options, terminals, refusals and the words of all of
//! them, as each kind of caller.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod endings;
mod environment;
mod exits;
mod generated;
mod mounts;
mod options;
mod program;
mod refusals;
mod screens;
mod snapshots;
mod streams;
mod terminal;
mod tools;
