//! The owner's tree as a sandbox works on it, and the way its changes come back: a layer over the tree, a base that was
//! recorded at the start, the difference of the two, and what the owner takes of it.
//!
//! It stands on the owner's side. Everything in a layer was written by an enemy: it is opened beneath a descriptor,
//! never followed, bounded, and git is never run in a repository that somebody inside could write.

mod beneath;
mod git;
mod guest;
mod hide;
mod layout;
mod owner;
mod pin;
mod prepare;
mod record;
mod refs;
mod refusal;
mod secrets;
mod settings;
mod survey;
mod upper;

pub use git::{GitError, Said};
pub use owner::Owner;
pub use pin::unpin;
pub use prepare::{Prepared, prepare, prepared};
pub use record::{Files, Head, Recorded, Repository};
pub use refusal::Refusal;
pub use secrets::SecretList;
