//! What can go wrong before a keeper takes over.

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
    /// Processes that the host does not see.
    #[error("the processes of sandbox {0} are those of its own kernel, and not the host's")]
    OwnProcesses(String),
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
    /// A runtime directory that belongs to somebody else.
    #[error("'{}' belongs to user {owner}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
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

impl EngineError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::File { .. } => {
                "check that it can be written, or set XDG_RUNTIME_DIR to a directory of yours"
            }
            Self::Foreign { .. } => "set XDG_RUNTIME_DIR to a directory of yours",
            Self::NoInit(_) => "install both programs of the release into one directory",
            Self::State { .. } => {
                "check that it can be written, or set AGENTBOX_HOME to a directory of yours"
            }
            Self::NoProgram { backend, .. } => {
                return Some(format!("`agentbox setup {backend}` installs it, or leave --backend out"));
            }
            Self::Program { .. } => "check that it can be executed, or install it anew with `agentbox setup`",
            Self::NoPlatform { .. } => {
                "`agentbox doctor` tells more; in a virtual machine without nested virtualization only systrap can work"
            }
            Self::Trial { problem, .. } => return problem.hint.clone(),
            Self::Setup { .. } => {
                "mend what it complains of and run `agentbox setup` again: what is done is not done twice"
            }
            Self::OwnProcesses(id) => return Some(format!("ask inside: `agentbox exec {id} -- ps aux`")),
            Self::NoRoot(_) => "only --backend gvisor, whose kernel is its own, has a root inside",
            Self::Unknown(_) => "`agentbox ls -a` lists all of them",
            Self::Ambiguous { .. } => "write more of the id",
            Self::NameTaken { .. } => "choose another name, or remove that sandbox with `agentbox rm`",
            Self::Allowlist { .. } => {
                "one rule a line: HOST[:PORT], *.DOMAIN or an address; `#` begins a comment"
            }
            Self::Configuration { .. } => "`agentbox config --help` tells what can be set",
            Self::NoNetwork(_) => "start one with --network allowlist, or with something that it may reach",
            Self::NotRunning(id) => return Some(format!("start it with `agentbox start {id}`")),
            Self::Running(id) => {
                return Some(format!("stop it first with `agentbox stop {id}`, or add --force"));
            }
            Self::Damaged { id, .. } => return Some(format!("remove it with `agentbox rm --force {id}`")),
            Self::Silent { id, .. } => return Some(format!("end it with `agentbox rm --force {id}`")),
            Self::Paused(id) => return Some(format!("let it go on with `agentbox resume {id}`")),
            Self::Pause { .. } => "try again; what waits in the kernel for a device cannot be paused",
            Self::Unlimited { id, .. } => {
                return Some(format!(
                    "stop it, change it, and start it again; `agentbox inspect {id}` says what limits it"
                ));
            }
            Self::InUse { .. } => "choose more, or end something inside first",
            Self::Limit { .. } => "run `agentbox doctor` to see what can be limited here",
            Self::Refused { .. } => {
                "nothing is done unrecorded: make room on the disk of the state directory"
            }
            Self::Publish { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program listens there: choose another port, or 0 for one that is free"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are root's: choose a higher one",
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: leave it out for 127.0.0.1"
                }
                _ => "leave the address out for 127.0.0.1",
            },
            Self::NotPublished { answer, .. } => match answer {
                PortAnswer::Full => "close one first with `agentbox port ID rm`",
                PortAnswer::Unrecorded => {
                    "there is no room for its record: make some on the disk of the state"
                }
                PortAnswer::Taken => "it is published already: `agentbox port ID ls` lists all",
                PortAnswer::Published | PortAnswer::Unusable => {
                    "start the sandbox again with this version of agentbox"
                }
            },
            Self::NoPort { id, .. } => return Some(format!("`agentbox port {id} ls` lists all")),
            Self::Waiting(id) => {
                return Some(format!(
                    "`agentbox diff {id}` shows them; take them with `apply`, or throw them away with `discard` or --force"
                ));
            }
            Self::Fetch { .. } => "take the files as one commit with --squash",
            Self::Review(error) => return error.hint(),
            Self::Image(error) => return error.hint(),
            Self::NoImage(_) => "make one with `agentbox create --image REF`",
            Self::Workspace(refusal) => return Some(refusal.hint()),
            Self::Commit { .. } | Self::Keeper(_) | Self::Handover(_) | Self::Random(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// The failure as a person reads it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::new(self, self.hint())
    }
}
