//! The only way out of a sandbox: it answers questions for names, takes every connection, decides by name, dials, compares
//! what the client says it means with what was decided, forwards, and tells what it saw.
//!
//! It stands on the exposed side and parses hostile bytes: everything is bounded, and nothing that was not decided on is
//! dialled. What may leave is not decided here but by [`policy::network`].

mod accept;
mod call;
mod carry;
mod connection;
mod conversation;
mod dial;
mod dns;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod gateway;
mod hello;
mod http;
mod limits;
mod listen;
mod names;
mod own;
mod pace;
mod proxy;
mod resolve;
mod seen;
mod speech;
mod sys;
pub mod token;
mod upstream;
mod weaken;

pub use carry::Meter;
pub use conversation::Traffic;
pub use gateway::{Entrance, Gateway};
pub use limits::{Limits, raise_descriptors};
pub use proxy::{Book, Proxy};
pub use seen::{Peer, Seen, Unrecorded, Witness};
