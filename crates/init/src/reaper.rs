//! Who was started and is not reaped yet. As PID 1 init reaps everything, also what others left behind, and
//! only signals a process group while its leader is in this table: a number that is not reaped cannot come
//! to mean another process.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, WaitStatus, wait};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use crate::sys;

/// All processes but init itself, as `kill` knows them.
const EVERYBODY: i32 = -1;

/// How a process ended: by itself with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// What becomes of a process group when its leader has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// What the leader left in the background goes on.
    GoesOn,
    /// The group was told to end; what has not is killed.
    Killed,
}

#[derive(Debug)]
struct Child {
    exit: oneshot::Sender<Exit>,
    rest: Rest,
}

/// The processes that init has started and not reaped.
#[derive(Debug, Default)]
pub(crate) struct Children {
    table: Mutex<BTreeMap<i32, Child>>,
}

impl Children {
    /// The table has no invariant that a panic could break, so poison is ignored.
    fn table(&self) -> MutexGuard<'_, BTreeMap<i32, Child>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `fork` and records the process it makes. The table is locked from before until after, so that a
    /// process that ends at once is not reaped as a stranger.
    pub(crate) fn record<E>(
        &self,
        fork: impl FnOnce() -> Result<i32, E>,
    ) -> Result<(i32, oneshot::Receiver<Exit>), E> {
        let (exit, ended) = oneshot::channel();
        let mut table = self.table();
        let pid = fork()?;
        table.insert(pid, Child { exit, rest: Rest::GoesOn });
        Ok((pid, ended))
    }

    /// Signals the process group of a child that has not ended.
    pub(crate) fn signal(&self, pid: i32, signal: i32) {
        if self.table().contains_key(&pid) {
            signal_group_of(pid, signal);
        }
    }

    /// Signals the process group of a child, and kills what is left of it once the child has ended.
    pub(crate) fn end(&self, pid: i32, signal: i32) {
        if let Some(child) = self.table().get_mut(&pid) {
            child.rest = Rest::Killed;
            signal_group_of(pid, signal);
        }
    }

    /// Tells every process to end and waits until none is left, or for as long as `grace`; what is left then is killed,
    /// so that it is known how each has ended before the walls come down.
    pub(crate) async fn end_all(&self, grace: Duration) {
        /// What the kernel takes to end those that were killed; what it does not, ends with init.
        const DYING: Duration = Duration::from_millis(500);
        let _ = sys::signal(EVERYBODY, libc::SIGTERM);
        // What is stopped hears of it only when it goes on.
        let _ = sys::signal(EVERYBODY, libc::SIGCONT);
        if !none_is_left(grace).await {
            let _ = sys::signal(EVERYBODY, libc::SIGKILL);
            none_is_left(DYING).await;
        }
    }

    /// Stops every process where it stands, or lets all go on, also those that one inside had stopped. No process is
    /// made meanwhile that would not hear of it: a fork begins anew when a signal has come.
    pub(crate) fn hold_all(&self, hold: bool) {
        // Where there is nobody, nobody has to be told.
        let _ = sys::signal(EVERYBODY, if hold { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// Reaps whatever ends, for ever. `signals` is readable when SIGCHLD came.
    pub(crate) async fn reap(self: Arc<Self>, signals: AsyncFd<OwnedFd>) {
        while let Ok(mut ready) = signals.readable().await {
            // Signals of one kind merge: how many were read says nothing about how many processes ended. Two can wait, one
            // for the process and one that somebody sent to this thread.
            let mut waiting = [0; 2 * size_of::<libc::signalfd_siginfo>()];
            if let Ok(Ok(count)) = ready.try_io(|signals| Ok(rustix::io::read(signals, &mut waiting)?)) {
                if count < waiting.len() {
                    // That was all; the next makes it readable anew.
                    ready.clear_ready();
                }
                self.reap_ended();
            }
        }
    }

    fn reap_ended(&self) {
        let mut table = self.table();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            let Some(child) = table.remove(&pid) else { continue };
            if child.rest == Rest::Killed {
                // The number stays taken for as long as the group has members; a group without members would
                // have to be replaced by one of the same number between these two lines.
                let _ = sys::signal(-pid, libc::SIGKILL);
            }
            // Nobody waits where the start had failed.
            let _ = child.exit.send(Exit::from(status));
        }
    }
}

/// Waits until there is nobody, or for so long; whether there is nobody. Whatever ends comes to init, so that without a
/// child of its own there is none.
async fn none_is_left(patience: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(5);
    let deadline = Instant::now().checked_add(patience);
    while sys::has_children() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Signals the group of a process that is not reaped. It may be so young that it has no group of its own yet;
/// it fails where it has ended, and then there is nothing left to signal.
fn signal_group_of(pid: i32, signal: i32) {
    if sys::signal(-pid, signal).is_err() {
        let _ = sys::signal(pid, signal);
    }
}

impl From<WaitStatus> for Exit {
    fn from(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Code(status.exit_status().unwrap_or_default()),
        }
    }
}
