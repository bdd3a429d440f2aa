//! Starts a sandbox: its runtime directory and lock, a keeper, and the first client's connection.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use handover::{HandoverError, KeeperEvent, KeeperOrder};
use policy::{SandboxId, SandboxSpec};
use tokio::io::AsyncReadExt as _;

use crate::directories::Directories;
use crate::error::EngineError;
use crate::reconcile;
use crate::scope;

/// The largest event of a keeper's.
const LARGEST_EVENT: usize = 1 << 20;

/// What starts sandboxes for one caller.
#[derive(Debug)]
pub struct Engine {
    directories: Directories,
    program: PathBuf,
    init: PathBuf,
}

/// A sandbox that is being started.
#[derive(Debug)]
pub struct Starting {
    /// The first client's connection to the supervisor.
    pub client: UnixStream,
    /// What the keeper tells.
    pub events: Events,
}

/// What a keeper tells, until it ends.
#[derive(Debug)]
pub struct Events {
    socket: tokio::net::UnixStream,
    keeper: Child,
}

impl Engine {
    /// Finds our directories and programs.
    pub fn open() -> Result<Self, EngineError> {
        let program = std::env::current_exe()
            .map_err(|source| EngineError::File { path: "/proc/self/exe".into(), source })?;
        let init = find_init(&program)?;
        Ok(Self { directories: Directories::open()?, program, init })
    }

    /// A new id.
    pub fn new_id(&self) -> Result<SandboxId, EngineError> {
        let mut bytes = [0; 12];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| EngineError::Random(errno.into()))?;
        Ok(SandboxId::from_random(bytes))
    }

    /// Removes what killed keepers left behind.
    pub fn reconcile(&self) {
        reconcile::reconcile(&self.directories.sandboxes());
    }

    /// Starts a sandbox and returns at once; [`Events`] tell how it goes.
    pub fn start(&self, spec: SandboxSpec) -> Result<Starting, EngineError> {
        let (runtime, lock) = self.make_runtime(&spec.id)?;
        let pair = || UnixStream::pair().map_err(EngineError::Keeper);
        let (client, supervisor) = pair()?;
        let (events, inner) = pair()?;
        let keeper = self.spawn_keeper(&spec.id, inner).inspect_err(|_| {
            let _ = fs::remove_dir_all(&runtime);
        })?;
        let order = KeeperOrder {
            spec,
            runtime,
            id_ranges: self.directories.id_ranges(),
            init: self.init.clone(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            own: self.directories.own(),
        };
        handover::send(&events, &order, &[lock.as_fd(), supervisor.as_fd()])?;
        events.set_nonblocking(true).map_err(EngineError::Keeper)?;
        let socket = tokio::net::UnixStream::from_std(events).map_err(EngineError::Keeper)?;
        Ok(Starting { client, events: Events { socket, keeper } })
    }

    /// Makes and locks the sandbox's runtime directory. Between the two, another command may take it for a dead
    /// one's and remove it; then it is made once more.
    fn make_runtime(&self, id: &SandboxId) -> Result<(PathBuf, File), EngineError> {
        const TRIES: usize = 100;
        let runtime = self.directories.sandboxes().join(id.as_str());
        for _ in 0..TRIES {
            match DirBuilder::new().mode(0o700).create(&runtime) {
                // The other command has locked it and is about to remove it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|source| EngineError::File { path: runtime.clone(), source })?,
            }
            if let Ok(lock) = reconcile::lock(&runtime)
                && runtime.exists()
            {
                return Ok((runtime, lock));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(EngineError::File { path: runtime, source: io::ErrorKind::ResourceBusy.into() })
    }

    /// Starts a keeper with nothing but its socket: no variable, no descriptor, no terminal of the caller's.
    fn spawn_keeper(&self, id: &SandboxId, socket: UnixStream) -> Result<Child, EngineError> {
        let mut command = match scope::prefix(&format!("agentbox sandbox {id}")) {
            Some(prefix) => {
                let mut command = Command::new(&prefix[0]);
                command.args(&prefix[1..]).arg(&self.program).env_clear().envs(scope::environment());
                command
            }
            None => {
                let mut command = Command::new(&self.program);
                command.env_clear();
                command
            }
        };
        pass_weaken(&mut command);
        command
            .arg("keeper")
            .current_dir("/")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(EngineError::Keeper)
    }
}

impl Events {
    /// The next event; none when the keeper has ended.
    pub async fn next(&mut self) -> Result<Option<KeeperEvent>, EngineError> {
        let mut length = [0; 4];
        if self.socket.read_exact(&mut length).await.is_err() {
            return Ok(None);
        }
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

/// Beside our own program, or where distributions put what is not for PATH.
fn find_init(program: &Path) -> Result<PathBuf, EngineError> {
    let beside = program.with_file_name("agentbox-init");
    let library =
        program.parent().and_then(Path::parent).map(|root| root.join("libexec/agentbox/agentbox-init"));
    [Some(beside), library]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| EngineError::NoInit(program.to_owned()))
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
