//! Images: taken in, unpacked, started from, and what strangers put into them. What is true of the host and of the store
//! is asked of the host.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
mod broken;
mod docker;
mod forms;
mod full;
mod guarded;
mod hostile;
mod killed;
mod layers;
mod layout;
mod listener;
mod place;
mod registry;
mod roots;
mod secure;
mod served;
mod tar;
mod tokens;
mod tools;
