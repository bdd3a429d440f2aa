//! A conversation with a supervisor about one process: asked for or attached to, its bytes passed on both ways.

use std::cell::Cell;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Engine, Pause};
use policy::SandboxId;
use tokio::sync::Notify;
use wire::{Ask, Channel, Event, ExecEvent, Exited, Failed, LaneReceiver, Request, Side};

use crate::keys::DetachKeys;
use crate::signals::{Signals, tell};
use crate::stdio::{self, Target};
use crate::terminal::RawMode;

/// The owner's terminal in a conversation about one inside.
#[derive(Clone)]
pub(crate) struct Screen<'raw> {
    pub(crate) raw: Option<&'raw RawMode>,
    /// How to leave.
    pub(crate) keys: DetachKeys,
}

/// Whose process a conversation is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'sandbox> {
    pub(crate) engine: &'sandbox Engine,
    pub(crate) id: &'sandbox SandboxId,
}

impl About<'_> {
    /// Whether everything inside stands still, and nothing that is passed on is heard.
    pub(crate) fn is_paused(self) -> bool {
        self.engine.is_paused(self.id)
    }

    /// Says so whenever it begins to: whoever waits for something inside would wonder. The same once where nothing is
    /// heard from inside at all.
    pub(crate) async fn watch(self, on_terminal: bool, answered: &Answered) -> Infallible {
        const LOOK: Duration = Duration::from_secs(1);
        const SILENCE: Duration = Duration::from_secs(5);
        let mut was_paused = false;
        let mut was_silent = false;
        // Until its walls are planned nobody inside could answer, and what is waited for then is said elsewhere.
        let mut expected = answered.asked;
        let end = if on_terminal { "\r\n" } else { "\n" };
        let id = self.id;
        loop {
            tokio::time::sleep(LOOK).await;
            let paused = self.engine.paused(id);
            if let (Some(why), false) = (paused, was_paused) {
                let why = if why == Pause::DiskFull { ", as it holds more than --disk allows" } else { "" };
                say(format!("sandbox {id} is paused{why}; `agentbox resume {id}` lets it go on{end}"));
            }
            was_paused = paused.is_some();
            if was_paused || was_silent || answered.heard.get() {
                continue;
            }
            if !self.engine.is_planned(id) {
                expected = Instant::now();
            } else if expected.elapsed() >= SILENCE {
                was_silent = true;
                say(format!("sandbox {id} has not answered yet; `agentbox stop --time 0 {id}` ends it{end}"));
            }
        }
    }
}

/// By a thread of its own: whoever reads our stderr may take their time, and signals are heard here.
fn say(text: String) {
    std::thread::spawn(move || io::stderr().write_all(text.as_bytes()));
}

/// Whether anything has been heard of what was asked for.
pub(crate) struct Answered {
    asked: Instant,
    heard: Cell<bool>,
}

impl Answered {
    /// From now on. Only who asks for a process is told something in every case.
    fn to(request: &Request) -> Self {
        let is_told = matches!(request.ask, Some(Ask::Exec(_)));
        Self { asked: Instant::now(), heard: Cell::new(!is_told) }
    }

    /// Of something that is waited for from now on.
    pub(crate) fn awaited() -> Self {
        Self { asked: Instant::now(), heard: Cell::new(false) }
    }

    /// Of something of which nothing need be heard.
    pub(crate) fn needless() -> Self {
        Self { asked: Instant::now(), heard: Cell::new(true) }
    }

    /// Whether nothing has, for so long.
    pub(crate) fn is_missed_for(&self, time: Duration) -> bool {
        !self.heard.get() && self.asked.elapsed() >= time
    }
}

/// How a conversation ended.
pub(crate) enum Ended {
    Exited(Exited),
    Failed(Failed),
    /// Stdout takes no more.
    OutputBroken(io::Error),
    /// The command did not end at this signal, nor at those before it.
    GivenUp(u8),
    /// It goes on without us, as we asked to leave.
    Detached,
    /// It goes on without us, as our terminal is gone.
    HungUp,
    Lost,
}

/// Asks for the command and passes bytes, signals and sizes on until it has ended.
pub(crate) async fn converse(
    client: UnixStream,
    request: Request,
    about: About<'_>,
    signals: &mut Signals,
    screen: Option<Screen<'_>>,
) -> Ended {
    let Ok((connection, _)) = wire::over_socket(client, Side::Asking) else { return Ended::Lost };
    let Ok(channel) = connection.open() else { return Ended::Lost };
    let Channel { messages, input, output, error, handle } = channel;
    let (mut asking, hearing) = (messages.sender, messages.receiver);
    if asking.send_message(&request).await.is_err() {
        return Ended::Lost;
    }
    drop((output.sender, error.sender, input.receiver));
    let left = Arc::new(Notify::new());
    let on_terminal = screen.is_some();
    let keys = screen.as_ref().map(|screen| screen.keys.clone());
    let stdin = tokio::spawn(stdio::pump_stdin(input.sender, keys, Arc::clone(&left)));
    let answered = Answered::to(&request);
    let heard = async { Ok(hear(hearing, Some(&answered)).await) };
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
        never = about.watch(on_terminal, &answered) => match never {},
        ended = tell(asking, (about, &answered), signals, screen, &left) => ended,
    };
    stdin.abort();
    drop(handle);
    connection.shutdown();
    ended
}

/// Sees what a process wrote, and types nothing.
pub(crate) async fn look(client: UnixStream, request: Request) -> Ended {
    let Ok((connection, _)) = wire::over_socket(client, Side::Asking) else { return Ended::Lost };
    let Ok(mut channel) = connection.open() else { return Ended::Lost };
    if channel.messages.sender.send_message(&request).await.is_err() {
        return Ended::Lost;
    }
    let stdout = async {
        let pumped = stdio::pump_output(channel.output.receiver, Target::Stdout).await;
        pumped.map_err(Ended::OutputBroken)
    };
    let stderr = async {
        let _ = stdio::pump_output(channel.error.receiver, Target::Stderr).await;
        Ok(())
    };
    let heard = async { Ok(hear(channel.messages.receiver, None).await) };
    let ended = tokio::try_join!(heard, stdout, stderr);
    connection.shutdown();
    match ended {
        Ok((ended, (), ())) => ended,
        Err(broken) => broken,
    }
}

async fn hear(mut hearing: LaneReceiver, answered: Option<&Answered>) -> Ended {
    while let Ok(Some(message)) = hearing.next_message::<ExecEvent>().await {
        if let Some(answered) = answered {
            answered.heard.set(true);
        }
        match message.event {
            Some(Event::Exited(exited)) => return Ended::Exited(exited),
            Some(Event::Failed(failed)) => return Ended::Failed(failed),
            Some(Event::Detached(_)) => return Ended::Detached,
            Some(Event::Started(_)) | None => {}
        }
    }
    Ended::Lost
}
