//! Sandboxes that stay: made, used, left alone, found again, ended, removed. What is true of them is asked of the
//! host: its processes, its files, and what the next command says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cycle;
mod files;
mod home;
mod killed;
mod logs;
mod names;
mod ports;
mod record;
mod state;
mod stop;
mod terminals;
