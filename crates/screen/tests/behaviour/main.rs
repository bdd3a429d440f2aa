//! What a screen must do, tried with real programs, with a terminal emulator that is not ours, and with everything
//! that a hostile program could write.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod alacritty;
mod cuts;
mod generated;
mod hostile;
mod memory;
mod modes;
mod programs;
mod recording;
mod scanner;
mod sys;
mod tmux;
