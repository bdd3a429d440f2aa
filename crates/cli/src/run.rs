//! `agentbox run`: a sandbox for one command, attached to this terminal or script. The straight line: settings,
//! start, ask, pump, end, and the command's exit code for our own.

use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;

use engine::{Command, Engine, Events, KeeperEvent, Starting, WaitingKeeper, find_outside};
use policy::SandboxSpec;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use wire::{
    Ask, Channel, Event, ExecEvent, ExecInput, Exited, Failed, LaneReceiver, LaneSender, Request, Side, Step,
    Tell, VERSION,
};

use crate::arguments::Run;
use crate::failure::Failure;
use crate::output::print_report;
use crate::settings::{self, Reporting, Settings};
use crate::stdio::{self, Target};
use crate::terminal::{self, RawMode};

const TIMED_OUT: u8 = 124;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNALLED: i32 = 128;
const SIGPIPE: u8 = 13;
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;

pub(crate) fn run(run: Run, keeper: WaitingKeeper) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let Settings { spec, command, report } = settings::resolve(run, &engine)?;
    // The order goes out first of all; everything else is done while the walls go up.
    let starting = engine.start(keeper, spec.clone()).inspect_err(|_| drop(engine.reconcile()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start").cause(error))?;
    let code = runtime.block_on(attach(&engine, starting, &spec, &command, report));
    // A thread may still wait for a key on stdin; nobody needs it any more.
    runtime.shutdown_background();
    code
}

async fn attach(
    engine: &Engine,
    Starting { client, keeper }: Starting,
    spec: &SandboxSpec,
    command: &Command,
    report: Reporting,
) -> Result<ExitCode, Failure> {
    let signals = Signals::listen()?;
    let (walls, standing) = oneshot::channel();
    let keeper = tokio::spawn(follow(keeper.listen()?, report, Some(walls)));
    // While the walls go up, what killed keepers left is cleaned up.
    let cleaning = engine.reconcile();

    let exec = command.exec(spec);
    if command.terminal.is_some() {
        // The report comes before the command has the screen, and on a terminal that still starts its lines.
        let _ = standing.await;
    }
    let raw = command.terminal.and_then(|_| RawMode::enter());
    let ended =
        converse(client, Request { version: VERSION, ask: Some(Ask::Exec(exec)) }, signals, raw.as_ref());
    let ended = ended.await;
    // The terminal is given back before anything is said.
    drop(raw);
    drop(cleaning);
    let kept = match keeper.await {
        Ok((kept, events)) => {
            // Where nobody else reaps, as in many containers, it would stay a zombie.
            events.wait();
            kept
        }
        Err(_) => Err(Failure::new("the sandbox was lost")),
    };
    if kept.is_err() {
        // The keeper may have been killed before it could clean up.
        drop(engine.reconcile());
    }
    match (ended, kept) {
        (Ended::Exited(exited), Ok(())) => Ok(exit_code(exited, spec)),
        (Ended::Failed(failed), Ok(())) => Err(not_started(failed, &command.argv[0], spec)),
        (_, Err(failure)) => Err(failure),
        (Ended::OutputBroken(error), Ok(())) => output_broken(error),
        (Ended::GivenUp(signal), Ok(())) => Ok(ExitCode::from(SIGNALLED as u8 + signal)),
        (Ended::Lost, Ok(())) => Err(Failure::new("the sandbox ended before the command did")
            .cause("its init, supervisor or keeper was killed")),
    }
}

/// How a conversation ended.
enum Ended {
    Exited(Exited),
    Failed(Failed),
    /// Stdout takes no more.
    OutputBroken(io::Error),
    /// The command did not end at this signal, nor at those before it.
    GivenUp(u8),
    Lost,
}

/// Prints what the keeper reports; done when nothing is left of the sandbox. `walls` is answered or dropped once
/// it is known whether they stand.
async fn follow(
    mut events: Events,
    reporting: Reporting,
    mut walls: Option<oneshot::Sender<()>>,
) -> (Result<(), Failure>, Events) {
    let outcome = loop {
        match events.next().await {
            Ok(Some(KeeperEvent::Ready { report, covered_sockets, .. })) => {
                print_report(&report, &covered_sockets, reporting);
                let _ = walls.take().map(|walls| walls.send(()));
            }
            Ok(Some(KeeperEvent::Failed(problem))) => break Err(problem.into()),
            Ok(Some(KeeperEvent::Ended { leftover: None })) => break Ok(()),
            Ok(Some(KeeperEvent::Ended { leftover: Some(leftover) })) => {
                break Err(Failure::new("something of the sandbox is left behind")
                    .cause(leftover)
                    .hint("the next agentbox command tries again to remove it"));
            }
            Ok(None) => break Err(Failure::new("the keeper ended without a word")),
            Err(error) => break Err(error.into()),
        }
    };
    (outcome, events)
}

/// Asks for the command and passes bytes, signals and sizes on until it has ended.
async fn converse(
    client: std::os::unix::net::UnixStream,
    request: Request,
    signals: Signals,
    raw: Option<&RawMode>,
) -> Ended {
    let Ok(stream) = client.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(client))
    else {
        return Ended::Lost;
    };
    let (read, write) = stream.into_split();
    let (connection, _) = wire::start(read, write, Side::Asking);
    let Ok(channel) = connection.open() else { return Ended::Lost };
    let Channel { messages, input, output, error, handle } = channel;
    let (mut asking, hearing) = (messages.sender, messages.receiver);
    if asking.send_message(&request).await.is_err() {
        return Ended::Lost;
    }
    drop((output.sender, error.sender, input.receiver));
    let stdin = tokio::spawn(stdio::pump_stdin(input.sender));
    let heard = async { Ok(hear(hearing).await) };
    // A command whose stdout nobody reads any more is ended, not waited for: it may go on writing for ever.
    let stdout =
        async { stdio::pump_output(output.receiver, Target::Stdout).await.map_err(Ended::OutputBroken) };
    let stderr = async {
        let _ = stdio::pump_output(error.receiver, Target::Stderr).await;
        Ok(())
    };
    let ended = tokio::select! {
        ended = async { tokio::try_join!(heard, stdout, stderr) } => match ended {
            Ok((ended, (), ())) => ended,
            Err(broken) => broken,
        },
        given_up = tell(asking, signals, raw) => given_up,
    };
    stdin.abort();
    drop(handle);
    connection.shutdown();
    ended
}

async fn hear(mut hearing: LaneReceiver) -> Ended {
    while let Ok(Some(message)) = hearing.next_message::<ExecEvent>().await {
        match message.event {
            Some(Event::Exited(exited)) => return Ended::Exited(exited),
            Some(Event::Failed(failed)) => return Ended::Failed(failed),
            Some(Event::Started(_)) | None => {}
        }
    }
    Ended::Lost
}

/// The signals that a caller may send us, which are meant for the command.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
    resize: Signal,
    stop: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::new("cannot listen for signals").cause(error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            quit: listen(SignalKind::quit())?,
            resize: listen(SignalKind::window_change())?,
            stop: listen(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }
}

/// Passes signals and sizes on, for as long as the command runs. A third request to end is for us.
async fn tell(mut asking: LaneSender, mut signals: Signals, raw: Option<&RawMode>) -> Ended {
    let mut patience = 3;
    loop {
        let told = tokio::select! {
            _ = signals.interrupt.recv() => Some(Tell::Signal(SignalKind::interrupt().as_raw_value())),
            _ = signals.terminate.recv() => Some(Tell::Signal(SignalKind::terminate().as_raw_value())),
            _ = signals.hang_up.recv() => Some(Tell::Signal(SignalKind::hangup().as_raw_value())),
            _ = signals.quit.recv() => Some(Tell::Signal(SignalKind::quit().as_raw_value())),
            _ = signals.resize.recv() => terminal::size().map(Tell::Resize),
            _ = signals.stop.recv() => {
                suspend(raw);
                terminal::size().map(Tell::Resize)
            }
        };
        if let Some(Tell::Signal(signal)) = told {
            patience -= 1;
            if patience == 0 {
                return Ended::GivenUp(u8::try_from(signal).unwrap_or_default());
            }
        }
        if let Some(tell) = told
            && asking.send_message(&ExecInput { tell: Some(tell) }).await.is_err()
        {
            return std::future::pending().await;
        }
    }
}

/// Gives the terminal back, stops as the shell expects, and takes it again when continued.
fn suspend(raw: Option<&RawMode>) {
    if let Some(raw) = raw {
        raw.restore();
    }
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    if let Some(raw) = raw {
        raw.again();
    }
}

/// A reader that left, as `head` does, is no failure; a disk that is full is one.
fn output_broken(error: io::Error) -> Result<ExitCode, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(ExitCode::from(SIGNALLED as u8 + SIGPIPE));
    }
    Err(Failure::new("cannot write what the command says to stdout").cause(error))
}

fn exit_code(exited: Exited, spec: &SandboxSpec) -> ExitCode {
    if exited.timed_out {
        return Failure::new("the command ran out of time")
            .hint("give it more with --timeout")
            .code(TIMED_OUT)
            .print();
    }
    let code = if exited.signal != 0 { SIGNALLED + exited.signal } else { exited.code };
    let code = u8::try_from(code & 0xff).unwrap_or(u8::MAX);
    if exited.out_of_memory {
        return Failure::new(format!("the command ran out of memory (limit {})", spec.limits.memory))
            .hint("give it more with --memory")
            .code(code)
            .print();
    }
    ExitCode::from(code)
}

fn not_started(failed: Failed, program: &OsStr, spec: &SandboxSpec) -> Failure {
    let outside = find_outside(program);
    let program = program.to_string_lossy();
    let cause = io::Error::from_raw_os_error(failed.errno);
    match Step::try_from(failed.step) {
        Ok(Step::Program) if failed.errno == ENOENT => {
            let failure = Failure::new(format!("'{program}' is not found inside")).code(NOT_FOUND);
            match outside {
                Some(path) => failure
                    .cause(format!("it is at '{}' outside, which is not part of the sandbox", path.display()))
                    .hint("--tools brings your tool chains along, --mount DIR:DIR any other directory"),
                None if program.contains('/') => {
                    failure.hint("check the path; the interpreter that a script names has to be inside too")
                }
                None => failure.hint("check the spelling, or install it on the host"),
            }
        }
        Ok(Step::Program) if failed.errno == E2BIG => Failure::new(format!("'{program}' cannot be executed"))
            .cause(cause)
            .hint("no word and no variable may be longer than 128KiB: pass what is large on stdin")
            .code(NOT_EXECUTABLE),
        Ok(Step::Program) => Failure::new(format!("'{program}' cannot be executed"))
            .cause(cause)
            .hint("check that it is a program with its executable bit set")
            .code(NOT_EXECUTABLE),
        Ok(Step::Workdir) => Failure::new(format!("cannot start in '{}'", spec.workdir))
            .cause(cause)
            .hint("name a directory that is inside with --workdir"),
        Ok(step) => Failure::new(format!("cannot start '{program}' ({step:?})")).cause(cause),
        Err(_) => Failure::new(format!("cannot start '{program}'")).cause(cause),
    }
}
