//! Everything that can be on record: one closed list, as small as what happened. Whatever comes from inside is a
//! [`Text`]; all else is a number, a value of `policy` or one word of a list.

use std::net::IpAddr;

use policy::network::{Mode, NetworkPolicy, Refusal};
use policy::{Backend, Limits, SandboxName, User, Wall};
use serde::{Deserialize, Serialize};

use crate::words::{Direction, FileOperation, Limit, OurProcess, PortChange, StopReason, TerminalChange};
use crate::{Arguments, Hash, Text};

/// What happened. In the file an object whose `kind` is the name in kebab case, with the fields beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Event {
    /// The sandbox was made.
    Created {
        /// The owner's name for it.
        name: Option<SandboxName>,
        /// What builds its walls.
        backend: Backend,
    },
    /// It runs.
    Started {
        /// The walls that are not there.
        missing: Vec<Wall>,
        /// The walls that are there in a weaker form.
        weaker: Vec<Wall>,
    },
    /// It has ended and can be started again.
    Stopped {
        /// Why.
        reason: StopReason,
        /// The exit code of its command, where that is why.
        code: Option<i32>,
    },
    /// It is gone, with all that it held.
    Removed,
    /// A process is to be started.
    Exec {
        /// Its number, counted up in a sandbox's life.
        exec: u64,
        /// The program and its arguments.
        argv: Arguments,
        /// Where it starts.
        cwd: Text,
        /// Who it runs as.
        user: User,
        /// The terminal that it gets, by name.
        terminal: Option<Text>,
        /// Whether nobody waits for it.
        detached: bool,
    },
    /// A process has ended.
    Exited {
        /// Its number.
        exec: u64,
        /// The code it gave, where it ended by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Whether its time-out had run out before.
        timed_out: bool,
        /// Whether the memory limit was hit while it ran.
        out_of_memory: bool,
    },
    /// A process could not be started.
    Failed {
        /// Its number.
        exec: u64,
        /// Which step failed.
        step: Text,
        /// The kernel's error number.
        errno: i32,
    },
    /// The owner's side touched a file inside.
    File {
        /// What was done.
        operation: FileOperation,
        /// To which path inside.
        path: Text,
        /// Which way bytes went.
        direction: Direction,
        /// How many; unknown of a copy that was cut short.
        bytes: Option<u64>,
        /// Whether it was done.
        ok: bool,
    },
    /// A limit was reached.
    Limit {
        /// Which.
        which: Limit,
    },
    /// Something was done to a terminal.
    Terminal {
        /// Its name.
        name: Text,
        /// What was done.
        what: TerminalChange,
    },
    /// A port was opened to the host or closed again.
    Port {
        /// Which of the two.
        what: PortChange,
        /// The host's address.
        address: IpAddr,
        /// The host's port.
        port: u16,
    },
    /// All processes were frozen.
    Paused,
    /// They run again.
    Resumed,
    /// Limits were changed.
    Updated {
        /// What holds now.
        limits: Limits,
    },
    /// This may leave the sandbox from now on.
    Policy {
        /// Which way out there is.
        mode: Mode,
        /// Each rule behind the word for what it does: `allow`, `deny`, `allow-private`, `service` or
        /// `upstream-proxy`, `bandwidth`.
        rules: Arguments,
    },
    /// The kernel has no rules by which everything that leaves comes to the gateway: only what is for these ports does, and
    /// the wall `egress` is weaker than the start says.
    Entrances {
        /// Which.
        ports: Vec<u16>,
    },
    /// A name was asked for inside.
    Question {
        /// Which.
        name: Text,
        /// Why it was not answered.
        refusal: Option<Refusal>,
        /// How often, since it was last on record.
        times: u64,
    },
    /// A connection was refused.
    Blocked {
        /// To whom: a name or an address.
        host: Text,
        /// On which port.
        port: u16,
        /// Why.
        refusal: Refusal,
        /// How often, since it was last on record.
        times: u64,
    },
    /// A connection was made.
    Connected {
        /// Its number, counted up in a sandbox's life.
        connection: u64,
        /// To whom: a name or an address.
        host: Text,
        /// On which port.
        port: u16,
        /// Where that is.
        address: IpAddr,
    },
    /// Something was asked for over it by plain HTTP.
    Request {
        /// The connection.
        connection: u64,
        /// How.
        method: Text,
        /// What.
        target: Text,
        /// Why it was not passed on.
        refusal: Option<Refusal>,
    },
    /// A connection is over.
    Disconnected {
        /// Its number.
        connection: u64,
        /// Bytes out of the sandbox.
        sent: u64,
        /// Bytes into it.
        received: u64,
        /// Why it was cut, where it was.
        refusal: Option<Refusal>,
    },
    /// A process of ours was killed, and the sandbox with it.
    Lost {
        /// Whose end it was.
        process: OurProcess,
    },
    /// Bytes before this record are no records: a write was cut off and whoever wrote then is gone. Written by
    /// [`Writer`](crate::Writer) itself, and by nobody else.
    Torn(Torn),
}

impl Event {
    /// What may leave, as it is put on record.
    #[must_use]
    pub fn policy(policy: &NetworkPolicy) -> Self {
        let NetworkPolicy { mode, allow, deny, private, services, upstream, bandwidth } = policy;
        let deny = deny.iter().map(|target| format!("deny {target}"));
        let allow = allow.iter().map(|rule| format!("allow {rule}"));
        let private = private.iter().map(|rule| format!("allow-private {rule}"));
        let services = services.iter().map(|service| format!("service {service}"));
        // Without the password.
        let upstream = upstream.iter().map(|proxy| format!("upstream-proxy {proxy}"));
        let bandwidth = bandwidth.iter().map(|size| format!("bandwidth {size}"));
        let ways = upstream.chain(bandwidth);
        let rules = Arguments::new(ways.chain(deny).chain(allow).chain(private).chain(services));
        Self::Policy { mode: *mode, rules }
    }

    /// Whether nothing can happen after it until the sandbox is started again.
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Lost { .. } | Self::Removed)
    }
}

/// Bytes that a write left behind which was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torn {
    pub(crate) bytes: u64,
    pub(crate) sha256: Hash,
}

impl Torn {
    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}
