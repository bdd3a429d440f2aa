//! A trial: a complete sandbox, started like any other, with /bin/true in it.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use handover::{KeeperEvent, Problem, Stay};
use policy::{
    Backend, Isolation, Life, Limits, Nesting, OciRuntime, PathError, Report, Root, SandboxSpec, Tools, User,
    Workspace,
};
use wire::{Ask, Event, ExecEvent, Request, Side, VERSION};

use crate::command::Command;
use crate::error::EngineError;
use crate::spawn::{Events, WaitingKeeper};
use crate::start::{Engine, Starting};

/// What runs in it.
pub(crate) const PROGRAM: &str = "/bin/true";
const WORKDIR: &str = "/workspace";
/// Milliseconds are usual; after this long something hangs.
const PATIENCE: Duration = Duration::from_secs(25);
/// What is said then.
const SILENT: &str = "the sandbox did not answer";

/// Starts a sandbox with this backend and ends it; what its report says.
pub(crate) fn run(engine: &Engine, backend: Backend, program: Option<OciRuntime>) -> Result<Report, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::new(&error, None))?;
    let ran =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, try_out(engine, backend, program)).await });
    ran.unwrap_or_else(|_| Err(problem(SILENT, format!("{} seconds passed", PATIENCE.as_secs()))))
}

/// Whether a trial failed because nothing was heard of it.
pub(crate) fn is_hang(problem: &Problem) -> bool {
    problem.error == SILENT
}

/// The same in a thread of its own, for callers that are in the middle of something.
pub(crate) fn run_beside(
    engine: &Engine,
    backend: Backend,
    program: Option<OciRuntime>,
) -> Result<Report, Problem> {
    let engine = engine.clone();
    let ran = std::thread::spawn(move || run(&engine, backend, program)).join();
    ran.unwrap_or_else(|_| Err(problem(SILENT, "nobody waited for it".to_owned())))
}

fn problem(error: &str, cause: String) -> Problem {
    Problem { error: error.to_owned(), causes: vec![cause], hint: None }
}

async fn try_out(engine: &Engine, backend: Backend, program: Option<OciRuntime>) -> Result<Report, Problem> {
    let told = |error: EngineError| error.problem();
    let spec = spec(engine, backend)?;
    let keeper = WaitingKeeper::start().map_err(told)?;
    let Starting { client, keeper, .. } =
        engine.start_with(keeper, spec.clone(), Stay::WithFirstClient, program).map_err(told)?;
    let events = keeper.listen().map_err(told)?;
    let command = Command { argv: vec![PROGRAM.into()], terminal: None, timeout: None };
    let asked = Request { version: VERSION, ask: Some(Ask::Exec(command.exec(&spec))) };
    let ended = converse(client, asked).await;
    let report = follow(events).await?;
    match ended {
        Some(0) => Ok(report),
        Some(code) => {
            Err(problem("the command in the sandbox failed", format!("{PROGRAM} ended with {code}")))
        }
        None => Err(problem("the command in the sandbox did not run", format!("no word of {PROGRAM}"))),
    }
}

fn spec(engine: &Engine, backend: Backend) -> Result<SandboxSpec, Problem> {
    let workdir = WORKDIR.parse().map_err(|error: PathError| Problem::new(&error, None))?;
    Ok(SandboxSpec {
        id: engine.new_id().map_err(|error| error.problem())?,
        name: None,
        backend,
        isolation: Isolation::BestEffort,
        workspace: Workspace::Empty,
        root: Root::Host(Tools::System),
        mounts: Vec::new(),
        environment: Vec::new(),
        workdir,
        user: User::AGENT,
        limits: Limits::default(),
        nesting: Nesting::Closed,
        life: Life::default(),
        ports: Vec::new(),
        network: policy::network::NetworkPolicy::default(),
    })
}

/// Runs the command to its end; the sandbox ends with the connection.
async fn converse(client: UnixStream, request: Request) -> Option<i32> {
    let (connection, _) = wire::over_socket(client, Side::Asking).ok()?;
    // All lanes stay open until the end: what the command might say has to go somewhere.
    let mut channel = connection.open().ok()?;
    channel.messages.sender.send_message(&request).await.ok()?;
    while let Ok(Some(message)) = channel.messages.receiver.next_message::<ExecEvent>().await {
        if let Some(Event::Exited(exited)) = message.event {
            connection.shutdown();
            return Some(exited.code);
        }
    }
    None
}

/// What the keeper tells: the report if the walls stood, or why they did not.
async fn follow(mut events: Events) -> Result<Report, Problem> {
    let mut outcome = Err(problem("the sandbox did not start", "the keeper ended without a word".to_owned()));
    while let Some(event) = events.next().await.map_err(|error| error.problem())? {
        match event {
            KeeperEvent::Ready { report, .. } => outcome = Ok(report),
            KeeperEvent::Failed(problem) => outcome = Err(problem),
            KeeperEvent::Ended { leftover: Some(leftover), .. } => {
                outcome = Err(problem("something of the sandbox is left behind", leftover));
            }
            KeeperEvent::Ended { leftover: None, .. } => {}
        }
    }
    events.let_go().wait();
    outcome
}
