//! What happens, on record. Nothing is started of which there is no record, and nothing is written after the end.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use audit::{Arguments, Event, Limit, StopReason, TerminalChange, Text, WriteError, Writer};
use failpoint::Point;
use handover::{Answer, Reached, Stay};
use policy::{Cpus, Limits, Pids, Size, User};
use tokio::sync::Notify;
use wire::{Exec, Exited, Failed, NewLimits, Step};

use crate::keeper::Keeper;

/// How long it takes until a part is asked for again that there was not.
const LATER: Duration = Duration::from_secs(5);

/// How many records of its network a sandbox may have in one life: half of all the room, at what one takes.
const OUTGOING: u64 = 2_000_000;

/// The kernel had no room for a process.
const EAGAIN: i32 = 11;

/// What is on record of the sandbox, at its end.
#[derive(Debug)]
pub(crate) struct Record {
    state: Mutex<State>,
    stay: Stay,
    /// The part is full.
    filled: Notify,
}

#[derive(Debug)]
struct State {
    writer: Writer,
    /// The part to go on in, as soon as the last record is whole.
    next: Option<OwnedFd>,
    /// Whether there will be no other part.
    is_full: bool,
    /// How many records of the network there are.
    outgoing: u64,
    /// Whether the end is on record.
    is_over: bool,
}

/// Why something is not on record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the record is full")]
    Full,
    #[error("the end is on record")]
    Over,
}

impl Record {
    /// Goes on with a log in which the start is on record.
    pub(crate) fn go_on(writer: Writer, stay: Stay) -> Self {
        let state = State { writer, next: None, is_full: false, outgoing: 0, is_over: false };
        let record = Self { state: Mutex::new(state), stay, filled: Notify::new() };
        record.tell_if_filled(&record.state());
        record
    }

    /// The writer sees to it that a record is whole or not there, so poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_if_filled(&self, state: &State) {
        if state.writer.is_full() && state.next.is_none() && !state.is_full {
            self.filled.notify_one();
        }
    }

    pub(crate) fn put(&self, event: &Event) -> Result<(), RecordError> {
        let mut state = self.state();
        if state.is_over {
            return Err(RecordError::Over);
        }
        state.put(event)?;
        self.tell_if_filled(&state);
        Ok(())
    }

    /// What has happened is recorded as well as it goes; it cannot be undone where the disk is full.
    fn try_put(&self, event: &Event) {
        let _ = self.put(event);
    }

    /// Asks the keeper for a new part whenever one is full. Until it comes, writing goes on in the old one.
    pub(crate) async fn renew(&self, keeper: &Keeper) {
        loop {
            self.filled.notified().await;
            match keeper.next_part().await {
                Some(Answer::Part(part)) => {
                    let mut state = self.state();
                    state.next = Some(part);
                    state.go_on();
                }
                Some(Answer::Full) => self.state().is_full = true,
                // The next record brings us here again.
                Some(_) | None => tokio::time::sleep(LATER).await,
            }
        }
    }

    /// Something is about to leave, or was kept from it.
    pub(crate) fn outgoing(&self, event: &Event) -> Result<(), RecordError> {
        let mut state = self.state();
        // What a sandbox sends must not use up the room in which all else is put on record.
        if state.is_full || state.outgoing >= OUTGOING {
            return Err(RecordError::Full);
        }
        state.outgoing += 1;
        drop(state);
        self.put(event)
    }

    /// A process is about to be asked for.
    pub(crate) fn exec(&self, number: u64, exec: &Exec) -> Result<(), RecordError> {
        if self.state().is_full {
            return Err(RecordError::Full);
        }
        self.put(&Event::Exec {
            exec: number,
            argv: Arguments::new(&exec.argv),
            cwd: Text::new(&exec.workdir),
            user: User { uid: exec.uid, gid: exec.gid },
            terminal: exec.terminal.map(|_| Text::new(&exec.terminal_name)),
            detached: exec.detached,
        })
    }

    pub(crate) fn exited(&self, number: u64, exited: Exited) {
        let by_signal = exited.signal != 0;
        self.try_put(&Event::Exited {
            exec: number,
            code: (!by_signal).then_some(exited.code),
            signal: by_signal.then_some(exited.signal),
            timed_out: exited.timed_out,
            out_of_memory: exited.out_of_memory,
        });
        if exited.timed_out {
            self.limit(Limit::Time);
        }
    }

    /// The kernel counts what it refuses; that there was something since the last look is on record once.
    pub(crate) fn reached(&self, reached: Reached) {
        if reached.memory {
            self.limit(Limit::Memory);
        }
        if reached.pids {
            self.limit(Limit::Pids);
        }
    }

    pub(crate) fn failed(&self, number: u64, failed: &Failed) {
        let step = Step::try_from(failed.step).ok();
        let name = step.map_or_else(|| "?".to_owned(), |step| format!("{step:?}"));
        self.try_put(&Event::Failed { exec: number, step: Text::new(name), errno: failed.errno });
        // Where no cgroup counts, this is all that is ever heard of it.
        if step == Some(Step::Fork) && failed.errno == EAGAIN {
            self.limit(Limit::Pids);
        }
    }

    pub(crate) fn file(&self, event: &Event) {
        self.try_put(event);
    }

    pub(crate) fn terminal(&self, name: &str, what: TerminalChange) {
        self.try_put(&Event::Terminal { name: Text::new(name), what });
    }

    /// A limit was reached.
    pub(crate) fn limit(&self, which: Limit) {
        self.try_put(&Event::Limit { which });
    }

    /// Everything is about to stand still, or goes on.
    pub(crate) fn paused(&self, paused: bool) -> Result<(), RecordError> {
        self.put(if paused { &Event::Paused } else { &Event::Resumed })
    }

    /// The owner is about to give other limits.
    pub(crate) fn updated(&self, new: NewLimits) -> Result<(), RecordError> {
        let limits = Limits {
            memory: Size::bytes(new.memory),
            cpus: Cpus::from_milli(new.cpus_milli),
            pids: Pids::new(new.pids),
            disk: Size::bytes(new.disk),
        };
        self.put(&Event::Updated { limits })
    }

    /// The end. Where something of the sandbox is kept, so is this, also when the power fails; whoever waits for the end
    /// of a run does not wait for the disk.
    pub(crate) fn stopped(&self, reason: StopReason, code: Option<i32>) {
        self.try_put(&Event::Stopped { reason, code });
        let mut state = self.state();
        state.is_over = true;
        if self.stay != Stay::WithFirstClient {
            let _ = state.writer.sync();
        }
        drop(state);
        failpoint::pass(Point::SupervisorEndRecorded);
    }
}

impl State {
    fn put(&mut self, event: &Event) -> Result<(), WriteError> {
        self.go_on();
        self.writer.append(SystemTime::now(), event)
    }

    /// Goes on in the new part, if there is one. Where the rest of a record still waits for room on the disk, so does
    /// this.
    fn go_on(&mut self) {
        if let Some(next) = &self.next
            && let Ok(part) = next.try_clone()
            && self.writer.go_on(part).is_ok()
        {
            self.next = None;
        }
    }
}
