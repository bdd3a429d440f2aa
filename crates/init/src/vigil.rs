//! What may happen to a process while it runs: it ends, its client tells it something, its client goes away, its
//! time runs out. Signals go to its whole process group; what left the group by `setsid` is out of reach and
//! ends with the sandbox.

use std::future::pending;
use std::time::Duration;

use libc::{SIGHUP, SIGKILL, SIGTERM};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use wire::{ChannelHandle, Exec, ExecInput, Exited, LaneReceiver, Tell};

use crate::reaper::{Children, Exit};
use crate::streams::Stream;
use crate::terminal;

/// What a process group has, when its client is gone, between being told to end and being killed.
const ABANDONED: Duration = Duration::from_secs(2);

/// The signals that there are.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// How long a process may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Until it is told to end; none is for ever.
    timeout: Option<Duration>,
    /// From then until it is killed.
    grace: Duration,
}

impl Patience {
    pub(crate) fn of(exec: &Exec) -> Self {
        Self {
            timeout: (exec.timeout_ms > 0).then(|| Duration::from_millis(exec.timeout_ms)),
            grace: Duration::from_millis(exec.grace_ms),
        }
    }
}

/// What is done to the process group next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Terminate,
    Kill,
}

/// An action and its time.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    at: Instant,
    action: Action,
}

impl Alarm {
    /// None where that time is beyond all clocks.
    fn after(delay: Duration, action: Action) -> Option<Self> {
        Instant::now().checked_add(delay).map(|at| Self { at, action })
    }

    /// Waits for the alarm, for ever where none is set.
    async fn rings(alarm: Option<Self>) -> Action {
        match alarm {
            Some(Self { at, action }) => {
                sleep_until(at).await;
                action
            }
            None => pending().await,
        }
    }
}

/// Watches over one running process.
#[derive(Debug)]
pub(crate) struct Vigil<'a> {
    pub(crate) pid: i32,
    pub(crate) children: &'a Children,
    pub(crate) handle: &'a ChannelHandle,
    pub(crate) terminal: Option<Stream>,
}

impl Vigil<'_> {
    /// Does what is told, and ends the process when its time is up or its client gone.
    pub(crate) async fn until_exit(
        self,
        mut exit: oneshot::Receiver<Exit>,
        tells: &mut LaneReceiver,
        patience: Patience,
    ) -> Exited {
        let mut alarm = patience.timeout.and_then(|timeout| Alarm::after(timeout, Action::Terminate));
        let mut timed_out = false;
        let mut listening = true;
        let mut abandoned = false;
        let exit = loop {
            tokio::select! {
                exit = &mut exit => break exit,
                told = tells.next_message::<ExecInput>(), if listening => match told {
                    Ok(Some(ExecInput { tell })) => self.obey(tell),
                    _ => listening = false,
                },
                () = self.handle.closed(), if !abandoned => {
                    abandoned = true;
                    self.children.signal(self.pid, SIGHUP);
                    self.children.end(self.pid, SIGTERM);
                    alarm = Alarm::after(ABANDONED, Action::Kill);
                }
                action = Alarm::rings(alarm) => match action {
                    Action::Terminate => {
                        timed_out = true;
                        self.children.end(self.pid, SIGTERM);
                        alarm = Alarm::after(patience.grace, Action::Kill);
                    }
                    Action::Kill => {
                        self.children.end(self.pid, SIGKILL);
                        alarm = None;
                    }
                },
            }
        };
        let (code, signal) = match exit {
            Ok(Exit::Code(code)) => (code, 0),
            Ok(Exit::Signal(signal)) => (0, signal),
            // The reaper is gone only when init itself is about to be.
            Err(_) => (0, SIGKILL),
        };
        Exited { code, signal, timed_out, out_of_memory: false }
    }

    fn obey(&self, tell: Option<Tell>) {
        match (tell, &self.terminal) {
            (Some(Tell::Signal(signal)), _) if SIGNALS.contains(&signal) => {
                self.children.signal(self.pid, signal);
            }
            // A terminal whose processes have gone takes no size any more.
            (Some(Tell::Resize(size)), Some(terminal)) => drop(terminal::resize(terminal, size)),
            _ => {}
        }
    }
}
