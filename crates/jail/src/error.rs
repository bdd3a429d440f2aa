//! Why the walls could not be built, each with what its reader can do about it.

use std::io;
use std::path::PathBuf;

use policy::{Backend, MountError, Wall};

use crate::builder::Phase;
use crate::network::{LOAD, MOST_PORTS};
use crate::step::OVERLAY;

/// How the step is described that gives a sandbox its own /proc.
const FRESH_PROC: &str = "mount proc at /proc";

/// For a state directory on which no overlay can stand.
const NO_LAYER: &str = "network file systems, overlays and a tmpfs without user attributes cannot carry what is \
                        written over a directory: set AGENTBOX_HOME to a directory on a local disk";

/// A wall that could not be built. Nothing has been started when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A path that the kernel would cut short.
    #[error("the path '{}' holds a NUL", .0.display())]
    Nul(PathBuf),
    /// A mount that was asked for and is not there.
    #[error("cannot mount '{}'", path.display())]
    Source {
        /// What was to be mounted.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A mount that may not be.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The tree cannot be shown under other ids, and its owner's files are not changed for that.
    #[error("the file system of '{}' cannot be mounted with other ids", path.display())]
    IdMappedMount {
        /// What was to be mounted.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel lays no overlay over trees that are shown under other ids.
    #[error("this kernel cannot lay a review workspace over a directory, or put an image together, for root")]
    NoOverlayForRoot,
    /// What would be written over the owner's tree has no place on that file system.
    #[error("the file system of '{}' cannot carry what is written over a directory", path.display())]
    NoLayer {
        /// Where it was to be.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A link of an image's is where something of the owner's was to be mounted.
    #[error("the image has a link at '{}', and nothing is mounted through one", .0.display())]
    LinkInImage(PathBuf),
    /// More mounts than can be handed to the builder.
    #[error("there are too many mounts")]
    TooManyMounts,
    /// Too many files to look for sockets among.
    #[error("'{}' holds more than {limit} files and cannot be searched for sockets", path.display())]
    TooManyFiles {
        /// What was to be mounted.
        path: PathBuf,
        /// How many are searched.
        limit: usize,
    },
    /// The kernel refused the namespaces.
    #[error("cannot make the namespaces of a sandbox")]
    Namespaces(#[source] io::Error),
    /// The id maps could not be written.
    #[error("cannot map the ids of a sandbox ({what})")]
    IdMap {
        /// Which file or helper.
        what: String,
        /// What it said.
        source: io::Error,
    },
    /// No id range is free.
    #[error("all {0} id ranges for sandboxes are taken")]
    NoIdRange(u32),
    /// A user that this sandbox's id map does not have.
    #[error("user {uid}:{gid} does not exist inside: only {only} is mapped here")]
    UnmappedUser {
        /// The user id asked for.
        uid: u32,
        /// The group id asked for.
        gid: u32,
        /// Who does exist.
        only: u32,
    },
    /// A step after clone failed.
    #[error("cannot build the walls: {step}")]
    Step {
        /// What was being done.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel has no rules to lead a network by, and none was to be had without them.
    #[error("the kernel has no rules to lead a network by")]
    NoRules(#[source] io::Error),
    /// Without rules each port has to be listened on, and there are too many.
    #[error("the policy is about {count} ports, and without rules for packets {MOST_PORTS} can be served")]
    TooManyPorts {
        /// How many.
        count: usize,
        /// Why there are no rules.
        source: Gap,
    },
    /// The process that builds the walls ended without a word.
    #[error("the process that builds the walls ended before it was done")]
    Vanished,
    /// A wall that strict isolation asks for cannot be had.
    #[error("strict isolation is not to be had here: {wall}")]
    Strict {
        /// Which.
        wall: Wall,
        /// Why not.
        source: Gap,
        /// How to get it.
        hint: String,
    },
    /// A backend whose program nobody has found.
    #[error("the backend {0} has no runtime here")]
    NoRuntime(Backend),
    /// What a runtime is told could not be written.
    #[error("cannot write the runtime's bundle")]
    Bundle(#[source] serde_json::Error),
    /// A file of ours or of the kernel's that the plan needs.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Why a wall is missing or weaker, as its report has it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Gap(pub String);

impl JailError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Namespaces(source) if source.raw_os_error() == Some(libc::ENOSPC) => {
                "the limit on namespaces is reached: raise it with `sudo sysctl -w user.max_user_namespaces=15000`"
            }
            Self::Namespaces(source) if source.raw_os_error() == Some(libc::ENOSYS) => {
                "the kernel is too old (5.15 is needed) or a container's filter hides clone3: \
                 run `agentbox doctor`"
            }
            Self::Namespaces(_) => "unprivileged user namespaces are closed here: run `agentbox doctor`",
            Self::IdMappedMount { .. } => {
                "run agentbox as the user who owns the directory, or copy it to a local file system"
            }
            Self::NoOverlayForRoot => {
                "boot a kernel of 5.19 or later, or run agentbox as the user who owns the directory"
            }
            Self::NoLayer { .. } => NO_LAYER,
            Self::LinkInImage(_) => "mount it somewhere else",
            Self::TooManyMounts => "mount a directory that holds the others: 250 are the most",
            Self::TooManyFiles { .. } => "mount a smaller directory",
            Self::IdMap { .. } => "run `agentbox doctor` to see which ids may be mapped here",
            Self::UnmappedUser { .. } => {
                "leave --user out, or give the caller a range of ids: `agentbox doctor` prints the command"
            }
            Self::Step { step, source } => step_hint(step, source),
            Self::Strict { hint, .. } => return Some(hint.clone()),
            Self::NoRules(_) => LOAD,
            Self::TooManyPorts { .. } => return Some(format!("{LOAD}, or allow fewer ports by name")),
            Self::NoIdRange(_) => "end some sandboxes first",
            Self::Source { source, .. } if source.raw_os_error() == Some(libc::EPERM) => {
                "root may not take hold of mounts here, as in a container without CAP_SYS_ADMIN: give it that \
                 (`--cap-add SYS_ADMIN`), or run agentbox as an ordinary user"
            }
            Self::Source { .. } => "check the path given to --mount",
            Self::Mount(_) => "mount the directory that is needed, not one that holds the host's own",
            Self::NoRuntime(backend) => return Some(format!("`agentbox setup {backend}` installs one")),
            Self::Nul(_) | Self::Vanished | Self::Bundle(_) | Self::File { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Which step was refused tells who refuses.
fn step_hint(step: &str, source: &io::Error) -> &'static str {
    let first_mounts = [Phase::Propagation.meaning(), Phase::NewRoot.meaning()];
    match source.raw_os_error() {
        Some(_) if step.starts_with(OVERLAY) => NO_LAYER,
        Some(libc::EPERM) if step == FRESH_PROC => {
            "parts of /proc are covered here, as in a container, and then the kernel gives no fresh one: start the \
             container with its /proc uncovered (docker: `--security-opt systempaths=unconfined`, podman: \
             `--security-opt unmask=ALL`); `agentbox doctor` tells more"
        }
        Some(libc::EPERM | libc::EACCES) if first_mounts.contains(&step) => {
            "nothing may be mounted in user namespaces here, as under Ubuntu's AppArmor rule or in a container: \
             `agentbox doctor` prints what mends it"
        }
        _ => "run `agentbox doctor` to see which wall this machine refuses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Step, inside};

    #[test]
    fn a_refused_step_tells_who_refuses() {
        let path = inside(std::path::Path::new("/proc")).unwrap();
        let proc = Step::FileSystem { kind: c"proc".to_owned(), path, flags: 0, options: None };
        let hint = |step: String, errno| {
            let source = io::Error::from_raw_os_error(errno);
            JailError::Step { step, source }.hint().unwrap()
        };
        assert!(hint(proc.describe(), libc::EPERM).contains("systempaths=unconfined"));
        assert!(hint(Phase::NewRoot.meaning().to_owned(), libc::EACCES).contains("AppArmor"));
        assert!(hint(proc.describe(), libc::ENODEV).contains("which wall"));
    }
}
