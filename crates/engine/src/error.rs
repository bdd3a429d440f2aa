//! What can go wrong before a keeper takes over.

mod hint;

use std::io;
use std::path::PathBuf;

use handover::{HandoverError, PortAnswer, Problem};
use policy::{Backend, HostPort};
use workspace::ReviewError;

/// A failure of the engine's own.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A directory or file of ours.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The state directory, or something in it.
    #[error("cannot use the state in '{}'", path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        source: io::Error,
    },
    /// No sandbox is meant.
    #[error("there is no sandbox '{0}'")]
    Unknown(String),
    /// More than one is meant.
    #[error("'{text}' is the beginning of more than one id: {}", ids.join(", "))]
    Ambiguous {
        /// What was written.
        text: String,
        /// Whom it fits.
        ids: Vec<String>,
    },
    /// A backend whose program is not installed.
    #[error("the backend {backend} needs {program}, which is not installed")]
    NoProgram {
        /// Which backend.
        backend: Backend,
        /// The program.
        program: &'static str,
    },
    /// A backend's program that cannot be used.
    #[error("cannot use '{}'", path.display())]
    Program {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        source: io::Error,
    },
    /// runsc starts a sandbox with none of its platforms.
    #[error("'{}' starts no sandbox here", path.display())]
    NoPlatform {
        /// Which.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A backend that was set up, and starts no sandbox.
    #[error("no sandbox starts with {backend}: {}", problem.error)]
    Trial {
        /// Which.
        backend: Backend,
        /// What its keeper told.
        problem: Problem,
    },
    /// A program with known holes, where a current one was set up.
    #[error("'{}' is still the one that is found, and {why}", path.display())]
    Outdated {
        /// Which.
        path: PathBuf,
        /// What is the matter with it.
        why: String,
    },
    /// A step of setting the machine up.
    #[error("cannot do '{command}'")]
    Setup {
        /// Which.
        command: String,
        /// What came of it.
        source: io::Error,
    },
    /// Root, where what runs inside asks the host's kernel.
    #[error("root is not to be had inside a {0} sandbox")]
    NoRoot(Backend),
    /// Inside, nobody could be started who would tell.
    #[error("nobody could be started in sandbox {id} who tells what runs there")]
    NobodyInside {
        /// Which.
        id: String,
        /// What the kernel inside said.
        source: io::Error,
    },
    /// Two sandboxes cannot have one name.
    #[error("the name '{name}' is taken by sandbox {id}")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        id: String,
    },
    /// A list of rules.
    #[error("cannot use the allowlist '{}'", path.display())]
    Allowlist {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        source: io::Error,
    },
    /// A file of settings.
    #[error("cannot use the configuration '{}'", path.display())]
    Configuration {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        source: io::Error,
    },
    /// It has no way out that a policy could be about.
    #[error("sandbox {0} was started without a network")]
    NoNetwork(String),
    /// What can only be done to a sandbox that runs.
    #[error("sandbox {0} does not run")]
    NotRunning(String),
    /// What can only be done to a sandbox that does not.
    #[error("sandbox {0} runs")]
    Running(String),
    /// Its files cannot be understood.
    #[error("the state of sandbox {id} is damaged")]
    Damaged {
        /// Which.
        id: String,
        /// What is the matter.
        source: io::Error,
    },
    /// It does not answer.
    #[error("sandbox {id} does not answer")]
    Silent {
        /// Which.
        id: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What can only be done to a sandbox that does not stand still.
    #[error("sandbox {0} is paused")]
    Paused(String),
    /// It would not stand still, or not go on.
    #[error("cannot pause or resume sandbox {id}")]
    Pause {
        /// Which.
        id: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A limit that nothing here holds up.
    #[error("the {what} limit of sandbox {id} cannot be changed while it runs")]
    Unlimited {
        /// Which.
        id: String,
        /// Of what.
        what: &'static str,
    },
    /// A limit below what is in use.
    #[error("sandbox {id} uses {} of memory, more than that", policy::Size::bytes(*used))]
    InUse {
        /// Which.
        id: String,
        /// How many bytes.
        used: u64,
    },
    /// A limit that the kernel does not take.
    #[error("cannot limit sandbox {id}")]
    Limit {
        /// Which.
        id: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Its supervisor does not do it.
    #[error("sandbox {id} refuses")]
    Refused {
        /// Which.
        id: String,
        /// Why.
        source: io::Error,
    },
    /// A port of the host's that cannot be had.
    #[error("cannot listen on {host}")]
    Publish {
        /// Which.
        host: HostPort,
        /// What the kernel said.
        source: io::Error,
    },
    /// A port that its supervisor did not take.
    #[error("{host} is not published")]
    NotPublished {
        /// Which.
        host: HostPort,
        /// What it said.
        answer: PortAnswer,
    },
    /// A port that is not published.
    #[error("{host} is no published port of sandbox {id}")]
    NoPort {
        /// Whose it is not.
        id: String,
        /// Which.
        host: HostPort,
    },
    /// A directory of ours that belongs to somebody else.
    #[error("'{}' belongs to user {owner}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// The variable that names another one.
        variable: &'static str,
    },
    /// A directory of ours that others may look into.
    #[error("'{}' is open to others", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// What they may do.
        mode: u32,
    },
    /// A state directory that depends on where the caller stands.
    #[error("AGENTBOX_HOME is '{}', which is no absolute path", .0.display())]
    RelativeHome(PathBuf),
    /// The static program that becomes PID 1 is not beside ours.
    #[error("agentbox-init is not beside '{}'", .0.display())]
    NoInit(PathBuf),
    /// The keeper could not be started or did not answer.
    #[error("cannot start the keeper")]
    Keeper(#[source] io::Error),
    /// The keeper went away.
    #[error("the keeper does not answer")]
    Handover(#[from] HandoverError),
    /// Changes that the owner has not taken.
    #[error("changes wait in sandbox {0}")]
    Waiting(String),
    /// The agent's commits.
    #[error("cannot fetch the commits of sandbox {id}")]
    Fetch {
        /// Whose.
        id: String,
        /// What is the matter.
        source: io::Error,
    },
    /// A reviewed workspace.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// A directory of the owner's that is no workspace.
    #[error(transparent)]
    Workspace(#[from] workspace::Refusal),
    /// It was not made from an image.
    #[error("sandbox {0} was not made from an image")]
    NoImage(String),
    /// What it wrote over its image is gone.
    #[error("sandbox {0} does not run, and what it wrote over its image has ended with its processes")]
    NotWritten(String),
    /// What it wrote over its image.
    #[error("cannot read what sandbox {id} wrote over its image")]
    Commit {
        /// Whose.
        id: String,
        /// What is the matter.
        source: io::Error,
    },
    /// An image.
    #[error(transparent)]
    Image(#[from] images::ImageError),
    /// The kernel gave no random bytes.
    #[error("cannot make an id")]
    Random(#[source] io::Error),
}
