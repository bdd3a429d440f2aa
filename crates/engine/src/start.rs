//! Starts a sandbox: its runtime directory and lock, a keeper, and the first client's connection.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover::{KeeperOrder, Stay};
use policy::{SandboxId, SandboxSpec};

use crate::directories::Directories;
use crate::error::EngineError;
use crate::ports;
use crate::reconcile::{self, Cleaning};
use crate::spawn::{Charge, Commissioned, WaitingKeeper, own_program};

/// What starts sandboxes for one caller.
#[derive(Debug)]
pub struct Engine {
    pub(crate) directories: Directories,
    init: PathBuf,
}

/// A sandbox that is being started.
#[derive(Debug)]
pub struct Starting {
    /// The first client's connection to the supervisor.
    pub client: UnixStream,
    /// Its keeper.
    pub keeper: Commissioned,
    /// Where its published ports are reached, in their order.
    pub ports: Vec<SocketAddr>,
}

impl Engine {
    /// Finds our directories and programs.
    pub fn open() -> Result<Self, EngineError> {
        Ok(Self { directories: Directories::open()?, init: find_init(&own_program()?)? })
    }

    /// A new id.
    pub fn new_id(&self) -> Result<SandboxId, EngineError> {
        let mut bytes = [0; 12];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| EngineError::Random(errno.into()))?;
        Ok(SandboxId::from_random(bytes))
    }

    /// The directory of what is on record.
    #[must_use]
    pub fn records(&self) -> PathBuf {
        self.directories.audit()
    }

    /// Removes what killed keepers left behind.
    pub fn reconcile(&self) -> Cleaning {
        reconcile::reconcile(&self.directories.sandboxes())
    }

    /// Gives a keeper the order for a sandbox of which nothing outlives its processes, and returns at once; what the
    /// keeper tells says how it goes.
    pub fn start(
        &self,
        keeper: WaitingKeeper,
        spec: SandboxSpec,
        stay: Stay,
    ) -> Result<Starting, EngineError> {
        self.order(keeper, spec, stay, None)
    }

    pub(crate) fn order(
        &self,
        keeper: WaitingKeeper,
        spec: SandboxSpec,
        stay: Stay,
        kept: Option<PathBuf>,
    ) -> Result<Starting, EngineError> {
        // First of all: a port that is taken is known before anything is made.
        let listeners = ports::listen_for(&spec.ports)?;
        let ports = ports::addresses(&listeners)?;
        self.directories.make_state()?;
        let (runtime, lock) = self.make_runtime(&spec.id)?;
        let (client, supervisor) = UnixStream::pair().map_err(EngineError::Keeper)?;
        let order = KeeperOrder {
            spec,
            runtime: runtime.clone(),
            id_ranges: self.directories.id_ranges(),
            init: self.init.clone(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            own: self.directories.own(),
            stay,
            kept,
            audit: self.directories.audit(),
        };
        let charge = Charge { order, lock, supervisor, listeners };
        let keeper = charge.give_to(keeper).inspect_err(|_| {
            let _ = fs::remove_dir_all(&runtime);
        })?;
        Ok(Starting { client, keeper, ports })
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
