//! Starts a keeper, gives it its order and hears what it tells. Where systemd is to give the keeper a scope and
//! does not, the keeper is started once more without one, and its report says what is missing.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use handover::{HandoverError, KeeperEvent, KeeperOrder};
use tokio::io::AsyncReadExt as _;

use crate::error::EngineError;
use crate::scope;

/// The largest event of a keeper's.
const LARGEST_EVENT: usize = 1 << 20;

/// What a keeper is given.
#[derive(Debug)]
pub(crate) struct Charge {
    /// Our own program, which is the keeper too.
    pub(crate) program: PathBuf,
    pub(crate) order: KeeperOrder,
    /// The lock of the runtime directory.
    pub(crate) lock: File,
    /// The supervisor's end of the first client's connection.
    pub(crate) supervisor: UnixStream,
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
    /// Starts a keeper, in a scope where one is needed and to be had.
    pub(crate) fn start(self) -> Result<Events, EngineError> {
        let Some(prefix) = scope::prefix(&format!("agentbox sandbox {}", self.order.spec.id)) else {
            return self.start_outside();
        };
        let mut command = Command::new(&prefix[0]);
        command.env_clear().envs(scope::environment()).args(&prefix[1..]).arg(&self.program);
        match self.give_to(command) {
            Ok((socket, keeper)) => Ok(Events { socket, keeper, charge: Some(self) }),
            Err(_) => self.start_outside(),
        }
    }

    fn start_outside(self) -> Result<Events, EngineError> {
        let mut command = Command::new(&self.program);
        command.env_clear();
        let (socket, keeper) = self.give_to(command)?;
        Ok(Events { socket, keeper, charge: None })
    }

    /// Starts a keeper with nothing but its socket: no variable, no descriptor, no terminal of the caller's.
    fn give_to(&self, mut command: Command) -> Result<(tokio::net::UnixStream, Child), EngineError> {
        let (events, inner) = UnixStream::pair().map_err(EngineError::Keeper)?;
        pass_weaken(&mut command);
        command.arg("keeper").current_dir("/");
        command.stdin(OwnedFd::from(inner)).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = command.spawn().map_err(EngineError::Keeper)?;
        // The command still holds the keeper's end, which would keep a keeper's end from being seen.
        drop(command);
        handover::send(&events, &self.order, &[self.lock.as_fd(), self.supervisor.as_fd()])?;
        events.set_nonblocking(true).map_err(EngineError::Keeper)?;
        let socket = tokio::net::UnixStream::from_std(events).map_err(EngineError::Keeper)?;
        Ok((socket, keeper))
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
            *self = charge.start_outside()?;
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
