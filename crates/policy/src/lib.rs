//! Pure values that every other crate speaks in: ids, sizes, paths, mounts, specs, the isolation
//! report, and what may leave a sandbox.
//!
//! Nothing here does I/O, runs async code or is unsafe. Text from outside is parsed into one of these types
//! at the door; afterwards it cannot be wrong.

pub mod network;

mod environment;
mod id;
mod life;
mod limits;
mod mount;
mod path;
mod port;
mod report;
mod runtime;
mod size;
mod spec;
mod text;
mod timeout;
mod user;
mod workspace;

pub use environment::{EnvironmentError, Variable, parse_environment_file};
pub use id::{IdError, SandboxId, SandboxName};
pub use life::Life;
pub use limits::{Cpus, CpusError, DiskError, LEAST_DISK, Limits, Pids, PidsError, parse_disk};
pub use mount::{Access, Mount, MountError, forbidden_source, forbidden_target};
pub use path::{PathError, SandboxPath};
pub use port::{HostPort, PORTS_LIMIT, PortError, PublishedPort};
pub use report::{Report, State, Wall, WallReport};
pub use runtime::{Build, OciRuntime, Platform, Standing, judge};
pub use size::{Size, SizeError};
pub use spec::{Backend, ImageRoot, Isolation, Nesting, Root, SandboxSpec, Tools};
pub use timeout::{Timeout, TimeoutError};
pub use user::{AGENT_GID, AGENT_UID, User, UserError};
pub use workspace::{Cover, CoverWith, Workspace, WorkspaceError};
