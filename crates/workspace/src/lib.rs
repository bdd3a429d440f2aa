//! The owner's tree as a sandbox works on it, and the way its changes come back: a layer over the tree, a base that was
//! recorded at the start, the difference of the two, and what the owner takes of it.
//!
//! It stands on the owner's side. Everything in a layer was written by an enemy: it is opened beneath a descriptor,
//! never followed, bounded, and git is never run in a repository that somebody inside could write.

mod aftermath;
mod asking;
mod base;
mod beneath;
mod blobs;
mod branch;
mod change;
mod commits;
mod direct;
mod discard;
mod error;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod git;
mod guest;
mod hide;
mod ignore;
mod import;
mod inert;
mod journal;
mod layer;
mod layout;
mod limits;
mod listing;
mod making;
mod merge;
mod mover;
mod names;
mod nested;
mod owner;
mod owner_now;
mod patch;
mod person;
mod pin;
mod plan;
mod preferences;
mod prepare;
mod quote;
mod record;
mod refs;
mod refusal;
mod remark;
mod review;
mod risk;
mod secrets;
mod seen;
mod settings;
mod snapshot;
mod staging;
mod store;
mod survey;
mod target;
mod upper;
mod waiting;
mod walk;
mod worktree;

pub use aftermath::Named;
pub use base::record_base;
pub use branch::{Branched, apply_to_branch};
pub use change::{Change, Hunk, Status};
pub use commits::{Commit, accept_pack, waiting_tip};
pub use direct::{apply_commits, prepare_direct};
pub use discard::{discard, has_repository, mode, objects, recover};
pub use error::ReviewError;
pub use git::{GitError, Said};
pub use inert::{exact_name, inert, inert_name, is_unseen};
pub use owner::Owner;
pub use pin::unpin;
pub use prepare::{Prepared, prepare, prepared};
pub use record::{Files, Head, Mode, Recorded, Repository};
pub use refusal::Refusal;
pub use remark::{Remark, Why};
pub use review::{Review, Reviewed, review};
pub use risk::{Code, Risk};
pub use secrets::SecretList;
pub use target::{Commits, Order, Risky, Selection, choices};
pub use waiting::{has_changes, is_waiting, waits};
pub use worktree::{Both, Brought, apply_to_worktree};
