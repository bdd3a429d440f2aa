//! Sandboxes that stay: made, used, left alone, found again, ended, removed. What is true of them is asked of the
//! host: its processes, its files, and what the next command says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cycle;
mod ends;
mod files;
mod home;
mod killed;
mod life;
mod logs;
mod names;
mod parts;
mod passing;
mod pause;
mod ports;
mod record;
mod state;
mod stop;
mod terminals;
mod usage;
