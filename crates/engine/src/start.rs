//! Starts a sandbox: its runtime directory and lock, a keeper, and the first client's connection.

use std::any::Any;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use failpoint::Point;
use handover::{KeeperOrder, Stay, TreeOrder};
use policy::{Backend, OciRuntime, SandboxId, SandboxSpec};

use crate::directories::Directories;
use crate::error::EngineError;
use crate::ports;
use crate::reconcile::{self, Cleaning};
use crate::records::RECORD_DAYS;
use crate::runtime::Runtime;
use crate::spawn::{Charge, Commissioned, WaitingKeeper, own_program};

/// What starts sandboxes for one caller.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) directories: Directories,
    init: PathBuf,
    /// Who is told that the program of a backend is tried out.
    pub(crate) trials: Option<Trials>,
}

/// What is called before the program of a backend is tried out, as that takes a while; what comes of it is dropped afterwards.
pub type Trials = fn(Backend) -> Box<dyn Any>;

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

/// What of a sandbox outlives its processes.
#[derive(Debug)]
pub(crate) struct Outliving {
    /// Its directory in the state.
    pub(crate) directory: PathBuf,
    /// The owner's tree that is its workspace, where it is one.
    pub(crate) tree: Option<TreeOrder>,
}

/// What is asked of a keeper.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) spec: SandboxSpec,
    pub(crate) stay: Stay,
    /// What its last walls are left to, where its backend has such a program.
    pub(crate) program: Option<OciRuntime>,
}

impl Engine {
    /// Finds our directories and programs.
    pub fn open() -> Result<Self, EngineError> {
        Ok(Self { directories: Directories::open()?, init: find_init(&own_program()?)?, trials: None })
    }

    /// The same, telling of trials.
    #[must_use]
    pub fn telling(self, trials: Trials) -> Self {
        Self { trials: Some(trials), ..self }
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

    /// Removes what killed keepers left behind, and once a day records that are old. For commands that take a while.
    pub fn reconcile(&self) -> [Cleaning; 2] {
        let expired = if self.is_expiry_due() {
            let engine = self.clone();
            Cleaning::beside(move || drop(engine.expire_records(RECORD_DAYS)))
        } else {
            Cleaning::default()
        };
        [self.clean(), expired]
    }

    /// Removes what killed keepers left behind, and puts on record that they were.
    pub fn clean(&self) -> Cleaning {
        reconcile::reconcile(&self.directories)
    }

    /// Gives a keeper the order for a sandbox of which nothing outlives its processes, and returns at once; what the
    /// keeper tells says how it goes.
    pub fn start(
        &self,
        keeper: WaitingKeeper,
        spec: SandboxSpec,
        stay: Stay,
    ) -> Result<Starting, EngineError> {
        let program = self.program(spec.backend)?;
        self.start_with(keeper, spec, stay, program)
    }

    /// The same with a program for its last walls that was looked at before.
    pub(crate) fn start_with(
        &self,
        keeper: WaitingKeeper,
        spec: SandboxSpec,
        stay: Stay,
        program: Option<OciRuntime>,
    ) -> Result<Starting, EngineError> {
        // First of all: a port that is taken is known before anything is made.
        let listeners = ports::listen_for(&spec.ports)?;
        self.directories.make_state()?;
        let runtime = self.take_for_now(&spec)?;
        self.order(keeper, runtime, listeners, Wanted { spec, stay, program }, None)
    }

    /// The lock of a sandbox, with which it is started or removed.
    pub(crate) fn take(&self, id: &SandboxId) -> Result<Runtime, EngineError> {
        Runtime::take(&self.directories.sandboxes(), id)
    }

    pub(crate) fn order(
        &self,
        keeper: WaitingKeeper,
        Runtime { directory: runtime, lock }: Runtime,
        listeners: Vec<TcpListener>,
        Wanted { spec, stay, program }: Wanted,
        outliving: Option<Outliving>,
    ) -> Result<Starting, EngineError> {
        let (kept, tree) = outliving.map_or((None, None), |it| (Some(it.directory), it.tree));
        let ports = ports::addresses(&listeners)?;
        let (client, supervisor) = UnixStream::pair().map_err(EngineError::Keeper)?;
        let order = KeeperOrder {
            spec,
            runtime,
            id_ranges: self.directories.id_ranges(),
            init: self.init.clone(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            own: self.directories.own(),
            stay,
            kept,
            audit: self.directories.audit(),
            tree,
            program,
        };
        let charge = Charge { order, lock, supervisor, listeners };
        // What is left of a failure has no lock any more and goes with the next command.
        let keeper = charge.give_to(keeper)?;
        failpoint::pass(Point::EngineOrderSent);
        Ok(Starting { client, keeper, ports })
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
