//! Images: taken in, unpacked, started from, and what strangers put into them. What is true of the host and of the store
//! is asked of the host.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod absent;
mod authority;
mod broken;
mod committed;
mod docker;
mod exported;
mod forms;
mod full;
mod guarded;
mod hints;
mod hostile;
mod killed;
mod layers;
mod layout;
mod leading;
mod listener;
mod place;
mod pulled;
mod registry;
mod roots;
mod secure;
mod served;
mod spooled;
mod tar;
mod telling;
mod tokens;
mod tools;
