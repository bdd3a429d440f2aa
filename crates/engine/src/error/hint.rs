//! What a person can do about a failure.

use std::io;

use handover::{PortAnswer, Problem};

use super::EngineError;

impl EngineError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::File { .. } => {
                "check that it can be written, or set XDG_RUNTIME_DIR to a directory of yours"
            }
            Self::Foreign { variable, .. } => {
                return Some(format!("set {variable} to a directory of yours"));
            }
            Self::Open { path, mode } => {
                let path = path.display();
                return Some(format!("it has mode {mode:o}: close it with `chmod 700 '{path}'`"));
            }
            Self::RelativeHome(path) => {
                let path = path.display();
                return Some(format!(
                    "a later command may stand elsewhere: write it whole, as AGENTBOX_HOME=\"$PWD/{path}\""
                ));
            }
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
            Self::Outdated { .. } => "take it away, or put /usr/local/bin before it in PATH",
            Self::Setup { command, .. } if *command == crate::setup::ASK_SUDO.join(" ") => {
                "sudo is not there, or does not let you: let root run the commands that `agentbox setup` shows"
            }
            Self::Setup { .. } => {
                "mend what it complains of and run `agentbox setup` again: what is done is not done twice"
            }
            Self::NobodyInside { .. } => {
                "its own kernel alone knows, and has no room for one more process; `stop` ends it"
            }
            Self::NoRoot(_) => "only --backend gvisor, whose kernel is its own, has a root inside",
            Self::Unknown(_) => "`agentbox ls -a` lists all of them",
            Self::Ambiguous { .. } => "write more of the id",
            Self::NameTaken { .. } => {
                "choose another name, or remove that sandbox with `agentbox rm`; a `run` gives its name back at its end"
            }
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
            Self::NotWritten(id) => {
                return Some(format!(
                    "commit one while it runs: `agentbox start {id}` begins with the image as it is, beside the workspace and \
                     the outputs, which are kept"
                ));
            }
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
