//! init as PID 1 of a namespace of its own, asked over its channel as the supervisor asks it.

mod domain;
mod endings;
mod exec;
mod files;
mod harness;
mod streams;
mod terminals;
mod users;
#[cfg(feature = "weaken")]
mod weakened;
