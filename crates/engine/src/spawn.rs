//! Starts a keeper, gives it its order and hears what it tells. Where systemd is to give the keeper a scope and
//! does not, the keeper is started once more without one, and its report says what is missing.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use handover::{HandoverError, KeeperEvent, KeeperOrder};
use jail::{Anew, Ends, Heritage};
use tokio::io::AsyncReadExt as _;

use crate::error::EngineError;
use crate::scope;

/// The largest event of a keeper's.
const LARGEST_EVENT: usize = 1 << 20;

/// The word by which our own program is a keeper.
const KEEPER: &str = "keeper";

/// A keeper that has been started and waits for its order; dropped without one, it ends. It has nothing of the caller's
/// memory, where keys may be: its supervisor must not either.
#[derive(Debug)]
pub struct WaitingKeeper {
    socket: UnixStream,
    process: Process,
}

/// How a keeper was started.
#[derive(Debug)]
enum Process {
    /// By the user's systemd, in a scope.
    InScope(Child),
    /// By ourselves.
    Anew(Anew),
}

impl Process {
    fn wait(&mut self) {
        match self {
            Self::InScope(child) => drop(child.wait()),
            Self::Anew(anew) => anew.wait(),
        }
    }

    fn has_begun(&mut self) {
        match self {
            Self::InScope(_) => {}
            Self::Anew(anew) => anew.has_begun(),
        }
    }
}

impl WaitingKeeper {
    /// Starts one, in a scope where one is needed and to be had.
    pub fn start() -> Result<Self, EngineError> {
        Self::in_scope().map_or_else(Self::start_outside, Ok)
    }

    /// The same for a program that has not read a word or a variable of its caller's but by `heritage`: such a one is
    /// forked, to live `life`, unless it needs a scope.
    pub fn fork(heritage: Heritage, life: fn() -> ExitCode) -> Result<Self, EngineError> {
        let forked =
            || Self::start_as(|ends, variables| Anew::fork(heritage, life, (KEEPER, ends), variables));
        Self::in_scope().map_or_else(forked, Ok)
    }

    fn in_scope() -> Option<Self> {
        let prefix = scope::prefix("agentbox sandbox")?;
        Self::start_in_scope(&prefix).ok()
    }

    /// Starts a keeper with nothing but its socket: no variable, no descriptor, no terminal of the caller's.
    fn start_outside() -> Result<Self, EngineError> {
        Self::start_as(|ends, variables| Anew::start(KEEPER, ends.its, variables))
    }

    fn start_as(
        start: impl FnOnce(Ends<'_>, &[(&str, OsString)]) -> io::Result<Anew>,
    ) -> Result<Self, EngineError> {
        let (socket, inner) = UnixStream::pair().map_err(EngineError::Keeper)?;
        let variables: Vec<_> = weakening().into_iter().chain(failpoint::variable()).collect();
        let ends = Ends { its: inner.as_fd(), ours: socket.as_fd() };
        let keeper = start(ends, &variables).map_err(EngineError::Keeper)?;
        Ok(Self { socket, process: Process::Anew(keeper) })
    }

    fn start_in_scope(prefix: &[String]) -> Result<Self, EngineError> {
        let (socket, inner) = UnixStream::pair().map_err(EngineError::Keeper)?;
        let mut command = Command::new(&prefix[0]);
        command.env_clear().envs(scope::environment()).envs(weakening()).envs(failpoint::variable());
        command.args(&prefix[1..]).arg(own_program()?).arg(KEEPER);
        command.stdin(OwnedFd::from(inner)).stdout(Stdio::null()).stderr(Stdio::null());
        // The command holds the keeper's end, which would keep a keeper's end from being seen; it goes here.
        let process = command.spawn().map_err(EngineError::Keeper)?;
        Ok(Self { socket, process: Process::InScope(process) })
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
    command.envs(weakening());
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
    process: Process,
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
    keeper: Process,
    /// Held until the first event, for a keeper whose scope may still be refused.
    charge: Option<Charge>,
}

impl Charge {
    pub(crate) fn give_to(self, keeper: WaitingKeeper) -> Result<Commissioned, EngineError> {
        let WaitingKeeper { socket, process } = keeper;
        let in_scope = matches!(process, Process::InScope(_));
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
            self.keeper.wait();
            *self = charge.give_to(WaitingKeeper::start_outside()?)?.listen()?;
        }
        self.charge = None;
        self.keeper.has_begun();
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST_EVENT {
            return Err(HandoverError::TooLarge(length).into());
        }
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).await.map_err(HandoverError::from)?;
        Ok(Some(serde_json::from_slice(&body).map_err(HandoverError::from)?))
    }

    /// No more is heard of it; it is on its way out.
    pub fn let_go(self) -> Leaving {
        Leaving(self.keeper)
    }
}

/// A keeper that has told of the end. Where nobody else reaps, as in many containers, one that is not waited for stays a
/// zombie.
#[must_use = "it is to be waited for"]
#[derive(Debug)]
pub struct Leaving(Process);

impl Leaving {
    /// Waits until the keeper itself is gone.
    pub fn wait(mut self) {
        self.0.wait();
    }
}

/// The negative controls of the tests say in a variable which wall to leave out.
#[cfg(feature = "weaken")]
fn weakening() -> Option<(&'static str, OsString)> {
    const VARIABLE: &str = "AGENTBOX_WEAKEN";
    Some((VARIABLE, env::var_os(VARIABLE)?))
}

#[cfg(not(feature = "weaken"))]
const fn weakening() -> Option<(&'static str, OsString)> {
    None
}
