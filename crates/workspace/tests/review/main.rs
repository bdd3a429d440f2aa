//! The way back from a layer to the owner's tree, with real git: what is shown, what is taken, and what never runs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod branch;
mod canaries;
mod cut_off;
mod hostile;
mod kinds;
mod place;
mod random;
mod repositories;
mod shown;
mod waiting;
mod worktree;
