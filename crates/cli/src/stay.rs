//! Sandboxes that stay: `create`, `run --detach` and `start`. The keeper goes on when we are gone.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use engine::{
    Asked, Command, Engine, Events, KeeperEvent, Sandbox, Starting, Stay, Unclaimed, WaitingKeeper,
};
use policy::{SandboxId, SandboxSpec};
use wire::{Ask, Event, Exec, ExecEvent, Failed};

use crate::arguments::{Create, Start};
use crate::conversation::{About, Answered};
use crate::failure::Failure;
use crate::outcome::{Asker, lost, no_keeper, not_started};
use crate::output::{id_text, print, print_report};
use crate::ports::say_chosen;
use crate::record::Form;
use crate::run::MAIN;
use crate::settings::{self, Reporting};
use crate::slowness::Slowness;
use crate::workspace;

pub(crate) fn create(create: Create, keeper: WaitingKeeper) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let report = if create.report { Reporting::Always } else { Reporting::Gaps };
    let json = create.json;
    let (spec, _rooted) = settings::spec(create.sandbox, &engine)?;
    settings::check_size(&[], &spec.environment)?;
    let id = spec.id.clone();
    let told = serde_json::json!({"id": spec.id, "name": spec.name});
    in_runtime(async {
        let asked = spec.ports.clone();
        workspace::say_where(&spec.workspace);
        let slowness = (Slowness::of(spec.backend), Slowness::of_trees(&spec));
        let (starting, unclaimed) = engine.create(keeper, spec, Stay::UntilEnded)?;
        say_chosen(&asked, &starting.ports);
        // What killed keepers left is cleaned up meanwhile.
        let cleaning = engine.reconcile();
        let ready = until_ready(starting.keeper.listen()?, report).await;
        drop((cleaning, slowness));
        let text = if json { format!("{told}\n") } else { format!("{id}\n") };
        tell(&engine, &id, ready.map(|keeper| (keeper, unclaimed)), &text)
    })
}

/// Prints the id of a new sandbox, after which it stays. One of which nobody could be told goes with its keeper, which
/// ends when it hears no more of us.
fn tell(
    engine: &Engine,
    id: &SandboxId,
    ready: Result<(Events, Unclaimed), Failure>,
    text: &str,
) -> Result<ExitCode, Failure> {
    let told = ready.and_then(|(_keeper, unclaimed)| {
        let code = print(text)?;
        unclaimed.claim()?;
        Ok(code)
    });
    told.inspect_err(|_| {
        engine.wait_for_end(id);
        let _ = engine.remove(id);
    })
}

pub(crate) fn start(start: &Start) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&start.sandbox)?;
    in_runtime(async {
        drop(engine.reconcile());
        let Sandbox { spec, .. } = engine.look_at(&id)?;
        let _slowness = (Slowness::of(spec.backend), Slowness::of_trees(&spec));
        let asked = spec.ports;
        let starting = engine.boot(WaitingKeeper::start()?, &id)?;
        say_chosen(&asked, &starting.ports);
        until_ready(starting.keeper.listen()?, Reporting::Gaps).await.map(drop)
    })?;
    print(&id_text(&id, Form::of(start.json)))
}

pub(crate) fn run_detached(
    engine: &Engine,
    keeper: WaitingKeeper,
    spec: SandboxSpec,
    command: &Command,
    report: Reporting,
    form: Form,
) -> Result<ExitCode, Failure> {
    let id = spec.id.clone();
    in_runtime(async {
        let terminal_name = MAIN.to_owned();
        let exec = Exec { detached: true, last: true, terminal_name, ..command.exec(&spec) };
        let _slowness = (Slowness::of(spec.backend), Slowness::of_trees(&spec));
        let (starting, unclaimed) = engine.create(keeper, spec.clone(), Stay::WithCommand)?;
        workspace::say_where(&spec.workspace);
        let Starting { client, keeper, ports } = starting;
        say_chosen(&spec.ports, &ports);
        let cleaning = engine.reconcile();
        let started = match until_ready(keeper.listen()?, report).await {
            Ok(keeper) => match ask_until_started(client, exec, About { engine, id: &id }).await {
                Ok(_) => Ok((keeper, unclaimed)),
                Err(Some(failed)) => Err(not_started(failed, &command.argv[0], (&spec, Asker::Run))),
                Err(None) => Err(Failure::new("the sandbox ended before the command ran")),
            },
            Err(failure) => Err(failure),
        };
        drop(cleaning);
        tell(engine, &id, started, &id_text(&id, form))
    })
}

/// Asks for a process that goes on without us; its number once it runs. A sandbox may stand still before init has said so,
/// and whoever waits is told.
pub(crate) async fn ask_until_started(
    client: UnixStream,
    exec: Exec,
    about: About<'_>,
) -> Result<u64, Option<Failed>> {
    let awaited = Answered::awaited();
    tokio::select! {
        started = started(client, exec) => started,
        never = about.watch(false, &awaited) => match never {},
    }
}

async fn started(client: UnixStream, exec: Exec) -> Result<u64, Option<Failed>> {
    let mut asked = Asked::over(client, Ask::Exec(exec)).await.map_err(|_| None)?;
    while let Ok(Some(message)) = asked.channel.messages.receiver.next_message::<ExecEvent>().await {
        match message.event {
            Some(Event::Started(started)) => return Ok(started.exec),
            Some(Event::Failed(failed)) => return Err(Some(failed)),
            Some(Event::Exited(_) | Event::Detached(_)) | None => {}
        }
    }
    Err(None)
}

/// Until the walls stand, or it is known why they do not; the keeper goes on telling.
async fn until_ready(mut events: Events, reporting: Reporting) -> Result<Events, Failure> {
    match events.next().await? {
        Some(KeeperEvent::Ready { report, covered_sockets, .. }) => {
            print_report(&report, &covered_sockets, reporting);
            Ok(events)
        }
        Some(KeeperEvent::Failed(problem)) => {
            events.let_go().wait();
            Err(problem.into())
        }
        Some(KeeperEvent::Ended { loss: Some(loss), .. }) => Err(lost(loss)),
        Some(KeeperEvent::Ended { .. }) => Err(Failure::new("the sandbox ended at once")),
        None => Err(no_keeper()),
    }
}

pub(crate) fn in_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start").cause(error))?;
    let done = runtime.block_on(work);
    // A thread may still wait for a key on stdin; nobody needs it any more.
    runtime.shutdown_background();
    done
}
