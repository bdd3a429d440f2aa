//! The owner's tree as a sandbox works on it, and the way its changes come back: a layer over the tree, a base that was
//! recorded at the start, the difference of the two, and what the owner takes of it.
//!
//! It stands on the owner's side. Everything in a layer was written by an enemy: it is opened beneath a descriptor,
//! never followed, bounded, and git is never run in a repository that somebody inside could write.

mod base;
mod change;
mod error;
mod git;
mod ignore;
mod inert;
mod layer;
mod limits;
mod listing;
mod nested;
mod patch;
mod preferences;
mod quote;
mod record;
mod remark;
mod risk;
mod snapshot;
mod staging;
mod store;
mod walk;

pub use base::record_base;
pub use change::{Change, Hunk, Status};
pub use error::ReviewError;
pub use git::GitError;
pub use inert::{exact_name, inert, inert_name};
pub use record::{Files, Head, Recorded, Repository};
pub use remark::{Remark, Why};
pub use risk::{Code, Risk};
