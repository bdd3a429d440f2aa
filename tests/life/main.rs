//! Life: nothing of a sandbox outlives it, however it ends. Processes and mounts go at once, directories and
//! cgroups with the next command at the latest. The numbers are those of the design's list of walls.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cycles;
mod killed;
mod reaping;
mod remains;
mod stress;
mod sys;
