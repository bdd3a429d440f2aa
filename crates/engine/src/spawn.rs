//! Starts a keeper, gives it its order and hears what it tells. Where systemd is to give the keeper a scope and
//! does not, the keeper is started once more without one, and its report says what is missing.

use std::env;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use handover::{HandoverError, KeeperEvent, KeeperOrder};
use tokio::io::AsyncReadExt as _;

use crate::error::EngineError;
use crate::scope;

/// The largest event of a keeper's.
const LARGEST_EVENT: usize = 1 << 20;

/// A keeper that has been started and waits for its order; dropped without one, it ends. It is a program of its own
/// and no fork of the caller's: its supervisor must not have the caller's memory, where keys may be.
#[derive(Debug)]
pub struct WaitingKeeper {
    socket: UnixStream,
    process: Child,
    in_scope: bool,
}

impl WaitingKeeper {
    /// Starts one, in a scope where one is needed and to be had.
    pub fn start() -> Result<Self, EngineError> {
        if let Some(prefix) = scope::prefix("agentbox sandbox") {
            let mut command = Command::new(&prefix[0]);
            command.env_clear().envs(scope::environment()).args(&prefix[1..]).arg(own_program()?);
            if let Ok(keeper) = Self::spawn(command, true) {
                return Ok(keeper);
            }
        }
        Self::start_outside()
    }

    fn start_outside() -> Result<Self, EngineError> {
        let mut command = Command::new(own_program()?);
        command.env_clear();
        Self::spawn(command, false)
    }

    /// Starts a keeper with nothing but its socket: no variable, no descriptor, no terminal of the caller's.
    fn spawn(mut command: Command, in_scope: bool) -> Result<Self, EngineError> {
        let (socket, inner) = UnixStream::pair().map_err(EngineError::Keeper)?;
        pass_weaken(&mut command);
        failpoint::hand_on(&mut command);
        command.arg("keeper").current_dir("/");
        command.stdin(OwnedFd::from(inner)).stdout(Stdio::null()).stderr(Stdio::null());
        // The command holds the keeper's end, which would keep a keeper's end from being seen; it goes here.
        let process = command.spawn().map_err(EngineError::Keeper)?;
        jail::send_elsewhere(process.id());
        Ok(Self { socket, process, in_scope })
    }
}

/// Our own program, which is the keeper too.
pub(crate) fn own_program() -> Result<PathBuf, EngineError> {
    env::current_exe().map_err(|source| EngineError::File { path: "/proc/self/exe".into(), source })
}

/// Our own program with one word and nothing of the caller's: no variable, no terminal, and above all not its memory.
pub fn own_command(word: &str) -> Result<Command, EngineError> {
    let mut command = Command::new(own_program()?);
    command.env_clear();
    pass_weaken(&mut command);
    command.arg(word).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// What a keeper is given.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) order: KeeperOrder,
    /// The lock of the runtime directory.
    pub(crate) lock: File,
    /// The supervisor's end of the first client's connection.
    pub(crate) supervisor: UnixStream,
    /// What listens for its published ports.
    pub(crate) listeners: Vec<TcpListener>,
}

/// A keeper that has its order.
#[derive(Debug)]
pub struct Commissioned {
    socket: UnixStream,
    process: Child,
    charge: Option<Charge>,
}

impl Commissioned {
    /// Begins to hear what it tells, in the caller's runtime.
    pub fn listen(self) -> Result<Events, EngineError> {
        self.socket.set_nonblocking(true).map_err(EngineError::Keeper)?;
        let socket = tokio::net::UnixStream::from_std(self.socket).map_err(EngineError::Keeper)?;
        Ok(Events { socket, keeper: self.process, charge: self.charge })
    }
}

/// What a keeper tells, until it ends.
#[derive(Debug)]
pub struct Events {
    socket: tokio::net::UnixStream,
    keeper: Child,
    /// Held until the first event, for a keeper whose scope may still be refused.
    charge: Option<Charge>,
}

impl Charge {
    pub(crate) fn give_to(self, keeper: WaitingKeeper) -> Result<Commissioned, EngineError> {
        let WaitingKeeper { socket, process, in_scope } = keeper;
        let listeners = self.listeners.iter().map(AsFd::as_fd);
        let descriptors: Vec<_> =
            [self.lock.as_fd(), self.supervisor.as_fd()].into_iter().chain(listeners).collect();
        let given = handover::send(&socket, &self.order, &descriptors);
        match given {
            Err(_) if in_scope => return self.give_to(WaitingKeeper::start_outside()?),
            given => given?,
        }
        Ok(Commissioned { socket, process, charge: in_scope.then_some(self) })
    }
}

impl Events {
    /// The next event; none when the keeper has ended.
    pub async fn next(&mut self) -> Result<Option<KeeperEvent>, EngineError> {
        let mut length = [0; 4];
        while self.socket.read_exact(&mut length).await.is_err() {
            // A keeper says something before it ends; what has ended in silence is what was to start it.
            let Some(charge) = self.charge.take() else { return Ok(None) };
            let _ = self.keeper.wait();
            *self = charge.give_to(WaitingKeeper::start_outside()?)?.listen()?;
        }
        self.charge = None;
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST_EVENT {
            return Err(HandoverError::TooLarge(length).into());
        }
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).await.map_err(HandoverError::from)?;
        Ok(Some(serde_json::from_slice(&body).map_err(HandoverError::from)?))
    }

    /// Waits until the keeper itself is gone.
    pub fn wait(mut self) {
        let _ = self.keeper.wait();
    }
}

/// The negative controls of the tests say in a variable which wall to leave out.
#[cfg(feature = "weaken")]
fn pass_weaken(command: &mut Command) {
    if let Some(walls) = std::env::var_os("AGENTBOX_WEAKEN") {
        command.env("AGENTBOX_WEAKEN", walls);
    }
}

#[cfg(not(feature = "weaken"))]
const fn pass_weaken(_command: &mut Command) {}
