//! Images: taken in, unpacked, started from, and what strangers put into them. What is true of the host and of the store
//! is asked of the host.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broken;
mod forms;
mod full;
mod hostile;
mod killed;
mod layers;
mod layout;
mod place;
mod registry;
mod roots;
mod served;
mod tar;
mod tools;
