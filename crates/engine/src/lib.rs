//! What the command line and the server share: where things are, starting a sandbox, the command to run in it,
//! and cleaning up after keepers that were killed.
//!
//! It stands on the owner's side. It holds no sandbox itself: a keeper does, and goes on without it.

mod ask;
mod command;
mod directories;
pub mod doctor;
mod error;
mod files;
mod kept;
mod ports;
mod reconcile;
mod sandboxes;
mod scope;
mod spawn;
mod start;

pub use archive::{Remark, Why};
pub use ask::Asked;
pub use command::{Command, find_outside};
pub use directories::Directories;
pub use error::EngineError;
pub use files::{FileError, Files};
pub use handover::{KeeperEvent, Problem, Reason, Stay};
pub use reconcile::Cleaning;
pub use sandboxes::{Entry, Phase, Sandbox};
pub use spawn::{Commissioned, Events, WaitingKeeper};
pub use start::{Engine, Starting};
