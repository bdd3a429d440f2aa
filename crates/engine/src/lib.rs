//! What the command line and the server share: where things are, starting a sandbox, the command to run in it,
//! and cleaning up after keepers that were killed.
//!
//! It stands on the owner's side. It holds no sandbox itself: a keeper does, and goes on without it.

mod aftermath;
mod ask;
mod backends;
mod changes;
mod command;
mod configuration;
mod directories;
pub mod doctor;
mod error;
mod fetch;
mod files;
mod find;
mod imaging;
mod kept;
mod making;
mod network;
mod pause;
mod ports;
mod processes;
mod reconcile;
mod records;
mod removal;
mod review;
mod runtime;
mod sandboxes;
mod scope;
mod setup;
mod signing;
mod spawn;
mod start;
mod trial;
mod usage;

pub use aftermath::Aftermath;
pub use archive::{Remark, Why};
pub use ask::Asked;
pub use backends::check_user;
pub use changes::{Applied, Destination};
pub use command::{Command, find_outside};
pub use configuration::{Configuration, Setting};
pub use directories::Directories;
pub use error::EngineError;
pub use files::{FileError, Files};
pub use handover::{KeeperEvent, Loss, Problem, Reason, Stay};
pub use imaging::{IMAGE_WORKER, ImageUser, ReadyImage, Worker, image_worker};
pub use jail::Heritage;
pub use kept::Unclaimed;
pub use network::{Held, Watched, read_allowlist, standing_rules};
pub use pause::Pause;
pub use processes::{CommandLine, Process, Snapshot};
pub use reconcile::Cleaning;
pub use records::{RECORD_DAYS, RecordHead};
pub use review::{RECORD_BASE, Settled, record_base};
pub use sandboxes::{Entry, Phase, Sandbox};
pub use setup::{SetupHow, SetupStep, SetupTarget};
pub use spawn::{Commissioned, Events, Leaving, WaitingKeeper, own_command};
pub use start::{Engine, Starting, Trials};
pub use usage::Usage;
