//! The signals of the caller's while a command runs: they are the command's, until it does not follow them.

use std::task::{Context, Waker};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use wire::{Detach, ExecInput, LaneSender, Tell};

use crate::conversation::{About, Answered, Ended, Screen};
use crate::failure::Failure;
use crate::terminal::{self, RawMode};

/// After so long without a word from inside, nobody there is taken to hear what is passed on.
const SILENCE: Duration = Duration::from_secs(1);

/// So close behind a request to end, a hang-up is part of it: whoever ends a login session sends both, that one first.
const BOTH: Duration = Duration::from_millis(50);

/// The signals that a caller may send us, which are meant for the command.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
    resize: Signal,
    stop: Signal,
    /// The last request to end that was passed on.
    told: Option<u8>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::new("cannot listen for signals").cause(error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            quit: listen(SignalKind::quit())?,
            resize: listen(SignalKind::window_change())?,
            stop: listen(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            told: None,
        })
    }

    /// Waits for a request to end, of whatever kind.
    pub(crate) async fn next_request(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
            _ = self.quit.recv() => SignalKind::quit(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }

    /// Whether our terminal goes away, too, for which whatever asks us to end asks then.
    async fn hangs_up(&mut self) -> bool {
        tokio::time::timeout(BOTH, self.hang_up.recv()).await.is_ok()
    }

    /// The signal by which the caller has asked for the end, if any, passed on or not.
    pub(crate) async fn request_to_end(&mut self) -> Option<u8> {
        // What has arrived may not have been looked at.
        tokio::task::yield_now().await;
        let mut context = Context::from_waker(Waker::noop());
        let requests = [
            (&mut self.interrupt, SignalKind::interrupt()),
            (&mut self.terminate, SignalKind::terminate()),
            (&mut self.hang_up, SignalKind::hangup()),
            (&mut self.quit, SignalKind::quit()),
        ];
        let arrived = requests.into_iter().find_map(|(signal, kind)| {
            signal.poll_recv(&mut context).is_ready().then(|| kind.as_raw_value())
        });
        arrived.and_then(|signal| u8::try_from(signal).ok()).or(self.told)
    }
}

/// Passes signals and sizes on, for as long as the command runs. A third request to end is for us, or the first where
/// nothing inside would hear it; so is a hang-up where the command has a terminal, which goes on without us.
pub(crate) async fn tell(
    mut asking: LaneSender,
    (about, answered): (About<'_>, &Answered),
    signals: &mut Signals,
    screen: Option<Screen<'_>>,
    left: &Notify,
) -> Ended {
    let raw = screen.as_ref().and_then(|screen| screen.raw);
    let mut patience = 3;
    loop {
        let told = tokio::select! {
            biased;
            _ = signals.hang_up.recv() => match screen {
                // Our own terminal is gone: there is nobody to wait for an answer.
                Some(_) => return Ended::HungUp,
                None => Some(Tell::Signal(SignalKind::hangup().as_raw_value())),
            },
            _ = signals.terminate.recv() => {
                if screen.is_some() && signals.hangs_up().await {
                    return Ended::HungUp;
                }
                Some(Tell::Signal(SignalKind::terminate().as_raw_value()))
            }
            _ = signals.interrupt.recv() => Some(Tell::Signal(SignalKind::interrupt().as_raw_value())),
            _ = signals.quit.recv() => Some(Tell::Signal(SignalKind::quit().as_raw_value())),
            _ = signals.resize.recv() => terminal::size().map(Tell::Resize),
            _ = signals.stop.recv() => {
                suspend(raw);
                terminal::size().map(Tell::Resize)
            }
            () = left.notified() => Some(Tell::Detach(Detach {})),
        };
        if let Some(Tell::Signal(signal)) = told {
            signals.told = u8::try_from(signal).ok();
            let is_paused = about.is_paused() || answered.is_missed_for(SILENCE);
            patience = if is_paused { 0 } else { patience - 1 };
            if patience == 0 {
                if screen.is_some() && !is_paused {
                    // It would go on without us, as what is on a terminal and stands still may.
                    let kill = Tell::Signal(rustix::process::Signal::KILL.as_raw());
                    let _ = asking.send_message(&ExecInput { tell: Some(kill) }).await;
                }
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
