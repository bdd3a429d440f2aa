//! `agentbox run`: a sandbox for one command, attached to this terminal or script. The straight line: settings,
//! start, ask, pump, end, and the command's exit code for our own.

use std::convert::Infallible;
use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use engine::{
    Command, Engine, Events, KeeperEvent, Leaving, Reason, Starting, Stay, Unclaimed, WaitingKeeper,
};
use policy::network::Mode;
use policy::{SandboxSpec, Workspace};
use tokio::sync::oneshot;
use wire::{Ask, Exec, Request, VERSION};

use crate::arguments::Run;
use crate::conversation::{About, Ended, Screen, converse};
use crate::failure::Failure;
use crate::keys::DetachKeys;
use crate::network::Blocked;
use crate::outcome::{
    Asker, SIGHUP, ended_early, exit_code, expired, left, lost, no_keeper, not_started, out_of_memory,
    output_broken, signalled,
};
use crate::output::print_report;
use crate::ports::say_chosen;
use crate::record;
use crate::review;
use crate::settings::{self, Reporting, Settings};
use crate::signals::Signals;
use crate::slowness::Slowness;
use crate::stay;
use crate::terminal::RawMode;
use crate::workspace;

/// How long processors are busy with what else starts at the same time.
const BUSY: Duration = Duration::from_secs(1);

/// The name of the terminal of a run's own command.
pub(crate) const MAIN: &str = "main";

pub(crate) fn run(run: Run, keeper: WaitingKeeper) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let (detach, form) = (run.detach, record::Form::of(run.json));
    let keys = run.terminal.detach_keys.clone().unwrap_or_default();
    // What holds the layers of an image is held to the end.
    let Settings { spec, command, report, rooted: _rooted } = settings::resolve(run, &engine)?;
    if detach {
        return stay::run_detached(&engine, keeper, spec, &command, report, form);
    }
    let engine = engine.telling(Slowness::of_trial);
    // The order goes out first of all; everything else is done while the walls go up.
    // A command on a terminal outlives the one who looks at it.
    let stay = if command.terminal.is_some() { Stay::WithCommand } else { Stay::WithFirstClient };
    let started = match &spec.workspace {
        Workspace::Empty => engine.start(keeper, spec.clone(), stay).map(|starting| (starting, None)),
        // What is written over a tree of the owner's, and commits, outlive the command.
        Workspace::Review(_) | Workspace::Direct(_) => {
            engine.create(keeper, spec.clone(), stay).map(|(starting, unclaimed)| (starting, Some(unclaimed)))
        }
    };
    let (starting, unclaimed) = started.inspect_err(|_| drop(engine.reconcile()))?;
    workspace::say_where(&spec.workspace);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start").cause(error))?;
    let mut leaving = None;
    let attached = attach(&engine, (starting, unclaimed), (&spec, &command), (report, keys), &mut leaving);
    let code = runtime.block_on(attached);
    // A thread may still wait for a key on stdin; nobody needs it any more.
    runtime.shutdown_background();
    // Only now: while we put everything away, the keeper does too.
    let _ = leaving.map(Leaving::wait);
    if code.is_err() {
        engine.forget_unstarted(&spec.id);
    }
    if report == Reporting::Always && !engine.is_running(&spec.id) {
        record::tell(&engine, &spec.id);
    }
    let has_ended = || !engine.is_running(&spec.id) && engine.spec(&spec.id).is_ok();
    match spec.workspace {
        Workspace::Review(_) if has_ended() => {
            workspace::say_what_is_left(&spec.id, engine.settle(&spec.id)?);
        }
        Workspace::Direct(_) if has_ended() => review::conclude(&engine, &spec.id)?,
        Workspace::Empty | Workspace::Review(_) | Workspace::Direct(_) => {}
    }
    code
}

/// Follows the command to its end, which is `leaving`'s too where the sandbox ends with it.
async fn attach(
    engine: &Engine,
    (Starting { client, keeper, ports }, unclaimed): (Starting, Option<Unclaimed>),
    (spec, command): (&SandboxSpec, &Command),
    (report, keys): (Reporting, DetachKeys),
    leaving: &mut Option<Leaving>,
) -> Result<ExitCode, Failure> {
    say_chosen(&spec.ports, &ports);
    let mut signals = Signals::listen()?;
    let ((walls, standing), (quiet, quietened)) = (oneshot::channel(), oneshot::channel());
    // One that is kept is known to have an init when it is ready, and not before.
    let starting = unclaimed.is_some().then(|| Slowness::of(spec.backend)).flatten();
    let waits = starting.into_iter().chain(Slowness::of_trees(spec)).collect();
    let keeper = tokio::spawn(follow(keeper.listen()?, report, (vec![walls, quiet], unclaimed, waits)));

    let detached = command.terminal.is_some();
    let exec = Exec { last: true, detached, terminal_name: MAIN.to_owned(), ..command.exec(spec) };
    let mut standing = Some(standing);
    if command.terminal.is_some()
        && let Some(standing) = standing.take()
    {
        // The report comes before the command has the screen, and on a terminal that still starts its lines.
        tokio::select! {
            _ = standing => {}
            // Nobody runs yet who could be told.
            signal = signals.next_request() => {
                drop(client);
                let _ = keeper.await;
                drop(engine.reconcile());
                return Ok(signalled(signal));
            }
        }
    }
    let raw = command.terminal.and_then(|_| RawMode::enter());
    let ended = converse(
        client,
        Request { version: VERSION, ask: Some(Ask::Exec(exec)) },
        About { engine, id: &spec.id },
        &mut signals,
        command.terminal.map(|_| Screen { raw: raw.as_ref(), keys }),
    );
    let has_network = spec.network.mode != Mode::None;
    let mut blocked = Blocked::default();
    let watching = async {
        match standing.filter(|_| has_network) {
            Some(standing) => blocked.watch(engine, &spec.id, standing).await,
            // A command that has the screen is not disturbed: all is said at the end.
            None => pending().await,
        }
    };
    let mut cleaning = None;
    // What killed keepers left is cleaned up a while after the walls stand, or at the end: until then the processors have
    // better things to do, also where many sandboxes start at once.
    let tidying = async {
        let _ = quietened.await;
        tokio::time::sleep(BUSY).await;
        cleaning = Some(engine.reconcile());
        pending::<Infallible>().await
    };
    let ended = tokio::select! {
        ended = ended => ended,
        never = watching => match never {},
        never = tidying => match never {},
    };
    // The terminal is given back before anything is said.
    drop(raw);
    drop(cleaning.unwrap_or_else(|| engine.reconcile()));
    match ended {
        Ended::Detached => return Ok(left(&spec.id, MAIN)),
        Ended::HungUp => return Ok(signalled(SIGHUP)),
        _ => {}
    }
    let kept = match keeper.await {
        Ok((kept, events)) => {
            *leaving = Some(events.let_go());
            kept
        }
        Err(_) => Err(Failure::new("the sandbox was lost")),
    };
    if has_network {
        blocked.finish(engine, &spec.id, report);
    }
    if kept.is_err() {
        // The keeper may have been killed before it could clean up.
        let _ = leaving.take().map(Leaving::wait);
        drop(engine.reconcile());
    }
    match (&kept, spec.life.lifetime) {
        (Ok(Reason::Expired), Some(lifetime)) => return Err(expired(lifetime)),
        (Ok(Reason::Memory), _) => return Err(out_of_memory(spec)),
        _ => {}
    }
    match (ended, kept) {
        (Ended::Exited(exited), Ok(_)) => Ok(exit_code(exited, spec)),
        (Ended::Failed(failed), Ok(_)) => Err(not_started(failed, &command.argv[0], (spec, Asker::Run))),
        // A Ctrl-C can hit a keeper that has not left the terminal yet.
        (Ended::Lost, Err(failure)) => match signals.request_to_end().await {
            Some(signal) => Ok(signalled(signal)),
            None => Err(failure),
        },
        (_, Err(failure)) => Err(failure),
        (Ended::OutputBroken(error), Ok(_)) => output_broken(error),
        (Ended::GivenUp(signal), Ok(_)) => Ok(signalled(signal)),
        (Ended::Detached | Ended::HungUp, Ok(_)) => Ok(ExitCode::SUCCESS),
        (Ended::Lost, Ok(reason)) => Err(ended_early(reason)),
    }
}

/// Prints what the keeper reports; done when nothing is left of the sandbox. `walls` are answered or dropped once
/// it is known whether they stand; what outlives the sandbox's processes stays from then on.
async fn follow(
    mut events: Events,
    reporting: Reporting,
    (mut walls, mut unclaimed, mut waits): (Vec<oneshot::Sender<()>>, Option<Unclaimed>, Vec<Slowness>),
) -> (Result<Reason, Failure>, Events) {
    let outcome = loop {
        match events.next().await {
            Ok(Some(KeeperEvent::Ready { report, covered_sockets, .. })) => {
                waits.clear();
                print_report(&report, &covered_sockets, reporting);
                if let Some(Err(error)) = unclaimed.take().map(Unclaimed::claim) {
                    break Err(error.into());
                }
                for walls in walls.drain(..) {
                    let _ = walls.send(());
                }
            }
            Ok(Some(KeeperEvent::Failed(problem))) => break Err(problem.into()),
            Ok(Some(KeeperEvent::Ended { leftover: None, loss: Some(loss), .. })) => break Err(lost(loss)),
            Ok(Some(KeeperEvent::Ended { reason, leftover: None, .. })) => break Ok(reason),
            Ok(Some(KeeperEvent::Ended { leftover: Some(leftover), .. })) => {
                break Err(Failure::new("something of the sandbox is left behind")
                    .cause(leftover)
                    .hint("the next agentbox command tries again to remove it"));
            }
            Ok(None) => break Err(no_keeper()),
            Err(error) => break Err(error.into()),
        }
    };
    (outcome, events)
}
