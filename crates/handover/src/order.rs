//! The keeper's order, what it leaves to its supervisor, and what it tells of how it went.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use policy::network::NetworkPolicy;
use policy::{Cover, Life, OciRuntime, Report, SandboxSpec};
use serde::{Deserialize, Serialize};

use crate::Reason;
use crate::message::{HandoverError, receive};
use crate::port::OfferedPort;

/// From the engine to a new keeper. With it go descriptors: the lock of the sandbox's runtime directory, the first
/// client's end of the supervisor's socket, and a listening socket for each of the specification's ports, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperOrder {
    /// What to build.
    pub spec: SandboxSpec,
    /// The sandbox's own runtime directory; the keeper removes it in the end.
    pub runtime: PathBuf,
    /// The file of locks for root's id ranges.
    pub id_ranges: PathBuf,
    /// The static file that becomes PID 1.
    pub init: PathBuf,
    /// The caller's home directory.
    pub home: Option<PathBuf>,
    /// Our own directories, which no mount may bring in.
    pub own: Vec<PathBuf>,
    /// How long it stays.
    pub stay: Stay,
    /// What of the sandbox outlives its processes, if anything does.
    pub kept: Option<PathBuf>,
    /// The directory of what is on record of sandboxes.
    pub audit: PathBuf,
    /// What its workspace is, where that is a tree of the owner's.
    pub tree: Option<TreeOrder>,
    /// The program that the last walls are left to, where the backend has one.
    pub program: Option<OciRuntime>,
}

/// A tree of the owner's to work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeOrder {
    /// The owner's directory.
    pub owner: PathBuf,
    /// The object stores of its repositories.
    pub stores: Vec<PathBuf>,
    /// Sockets and devices of the host's in the tree, which are absent inside; as they are shown to a person.
    pub covered: Vec<String>,
    /// How it is shown.
    pub way: Way,
}

/// How a tree of the owner's is shown. What is the sandbox's own in it is in what is kept of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Under a layer.
    Layered,
    /// Itself, with some of it covered.
    Direct(Vec<Cover>),
}

impl KeeperOrder {
    /// Receives an order, the lock, and what is for the supervisor.
    pub fn receive(socket: &UnixStream) -> Result<(Self, OwnedFd, Sockets), HandoverError> {
        let (order, descriptors) = receive::<Self>(socket)?;
        let (count, expected) = (descriptors.len(), 2 + order.spec.ports.len());
        let mut descriptors = descriptors.into_iter();
        match (descriptors.next(), descriptors.next()) {
            (Some(lock), Some(client)) if count == expected => {
                let insides = order.spec.ports.iter().map(|port| port.inside);
                let ports = insides.zip(descriptors);
                let ports = ports.map(|(inside, listener)| OfferedPort { listener, inside }).collect();
                Ok((order, lock, Sockets { client, ports }))
            }
            _ => Err(HandoverError::Descriptors(count, expected)),
        }
    }
}

/// What comes with an order and is for the supervisor.
#[derive(Debug)]
pub struct Sockets {
    /// The first client's connection.
    pub client: OwnedFd,
    /// The ports to publish.
    pub ports: Vec<OfferedPort>,
}

/// How long a sandbox stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stay {
    /// It ends when whoever started it is gone.
    WithFirstClient,
    /// It ends with the command that it was made for, and when whoever started it is gone before that runs.
    WithCommand,
    /// It ends when it is told to.
    UntilEnded,
}

/// What the keeper leaves to its supervisor, which is forked from it and keeps nothing else.
#[derive(Debug)]
pub struct Bequest {
    /// The host id that it changes to, where there is one for it.
    pub uid: Option<u32>,
    /// How long the sandbox stays.
    pub stay: Stay,
    /// When the sandbox is ended although nobody has asked for it.
    pub life: Life,
    /// What is on record of the sandbox goes on from here.
    pub head: audit::Head,
    /// Where it is written, at the end only.
    pub audit: OwnedFd,
    /// The socket to its keeper.
    pub keeper: OwnedFd,
    /// The control channel.
    pub channel: OwnedFd,
    /// What leads to init on it.
    pub way: Inward,
    /// What may leave the sandbox.
    pub network: NetworkPolicy,
    /// Where the sockets of its network come from, if it has one.
    pub gate: Option<OwnedFd>,
    /// The socket on which it takes clients.
    pub listener: OwnedFd,
    /// The first client's connection.
    pub client: OwnedFd,
    /// The ports to publish.
    pub ports: Vec<OfferedPort>,
    /// The socket on which it takes further ones.
    pub publishing: OwnedFd,
}

/// What leads from the supervisor to init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inward {
    /// The walls are our own: the keeper knows when they stand, and descriptors pass.
    Straight,
    /// A runtime is in between: only what init says shows that it runs.
    ThroughRuntime,
    /// The runtime itself passes bytes on, and descriptors not.
    Copied,
    /// So does a kernel.
    ThroughKernel,
}

impl Inward {
    /// Whether descriptors pass.
    #[must_use]
    pub const fn carries_descriptors(self) -> bool {
        matches!(self, Self::Straight | Self::ThroughRuntime)
    }

    /// What it is with this backend.
    #[must_use]
    pub const fn of(backend: policy::Backend) -> Self {
        match backend {
            policy::Backend::Native => Self::Straight,
            policy::Backend::Crun => Self::ThroughRuntime,
            policy::Backend::Runc => Self::Copied,
            policy::Backend::Gvisor => Self::ThroughKernel,
        }
    }
}

/// From the keeper to the engine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeeperEvent {
    /// The walls stand and init runs.
    Ready {
        /// Each wall.
        report: Report,
        /// Sockets of the host's in mounted trees, covered.
        covered_sockets: Vec<PathBuf>,
        /// Init's process id on the host.
        init: i32,
        /// The supervisor's.
        supervisor: i32,
    },
    /// Nothing was started, and nothing is left.
    Failed(Problem),
    /// The sandbox has ended and nothing is left of it.
    Ended {
        /// Why.
        reason: Reason,
        /// What could not be removed, if anything.
        leftover: Option<String>,
        /// Who was gone before anybody had asked for it, where that is known.
        loss: Option<Loss>,
    },
}

/// Who of a sandbox was gone before anybody had asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// What is inside, with what its runtime said or how it ended; its words may come from inside.
    Inside(String),
    /// Its supervisor, and why it gave up, if that is known: nothing is where it was killed.
    Supervisor(Option<String>),
}

/// A failure as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What failed.
    pub error: String,
    /// Why, from the outermost reason inwards.
    pub causes: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// The failure with all its causes.
    #[must_use]
    pub fn new(error: &dyn std::error::Error, hint: Option<String>) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self { error: error.to_string(), causes, hint }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use policy::{Backend, Isolation, Limits, Nesting, Root, SandboxId, Tools, User, Workspace};

    use super::*;
    use crate::message::send;

    fn order(ports: &[&str]) -> KeeperOrder {
        let spec = SandboxSpec {
            id: SandboxId::from_random([0; 12]),
            name: None,
            backend: Backend::Native,
            isolation: Isolation::Strict,
            workspace: Workspace::Empty,
            root: Root::Host(Tools::System),
            mounts: Vec::new(),
            environment: Vec::new(),
            workdir: "/workspace".parse().unwrap(),
            user: User::AGENT,
            limits: Limits::default(),
            nesting: Nesting::Closed,
            life: policy::Life::default(),
            ports: ports.iter().map(|port| port.parse().unwrap()).collect(),
            network: policy::network::NetworkPolicy::default(),
        };
        let path = PathBuf::from("/");
        KeeperOrder {
            spec,
            runtime: path.clone(),
            id_ranges: path.clone(),
            init: path.clone(),
            home: None,
            own: Vec::new(),
            stay: Stay::UntilEnded,
            kept: None,
            audit: path,
            tree: None,
            program: None,
        }
    }

    #[test]
    fn an_order_comes_with_a_descriptor_for_each_port() {
        let (left, right) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        send(&left, &order(&["1:80", "2:81"]), &[file.as_fd(); 4]).unwrap();
        let (_, _, sockets) = KeeperOrder::receive(&right).unwrap();
        let insides: Vec<u16> = sockets.ports.iter().map(|port| port.inside.get()).collect();
        assert_eq!(insides, [80, 81]);

        for count in [0, 1, 2, 3, 5] {
            send(&left, &order(&["1:80", "2:81"]), &vec![file.as_fd(); count]).unwrap();
            let received = KeeperOrder::receive(&right);
            assert!(matches!(received, Err(HandoverError::Descriptors(_, 4))), "{count}");
        }
        let too_many = vec![file.as_fd(); 3 + policy::PORTS_LIMIT];
        assert!(matches!(send(&left, &order(&[]), &too_many), Err(HandoverError::Descriptors(..))));
    }
}
