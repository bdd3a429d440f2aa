//! Chaos: a process of ours ends between any two steps, several commands want the same sandbox, or both at once by
//! chance. Afterwards the list tells the truth, nothing is left that is not listed, and everybody else goes on.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod armed;
mod count;
mod failpoints;
mod place;
mod races;
mod walk;
