//! What happens, on record. Nothing is started of which there is no record.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use audit::{Arguments, Event, StopReason, TerminalChange, Text, WriteError, Writer};
use failpoint::Point;
use handover::Stay;
use policy::User;
use wire::{Exec, Exited, Failed, Step};

/// What is on record of the sandbox, at its end.
#[derive(Debug)]
pub(crate) struct Record {
    writer: Mutex<Writer>,
    stay: Stay,
}

impl Record {
    /// Goes on with a log, and puts the first of this time on record.
    pub(crate) fn begin(writer: Writer, events: &[Event], stay: Stay) -> Result<Self, WriteError> {
        let record = Self { writer: Mutex::new(writer), stay };
        events.iter().try_for_each(|event| record.put(event))?;
        Ok(record)
    }

    /// The writer sees to it that a record is whole or not there, so poison is ignored.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, event: &Event) -> Result<(), WriteError> {
        self.writer().append(SystemTime::now(), event)
    }

    /// What has happened is recorded as well as it goes; it cannot be undone where the disk is full.
    fn try_put(&self, event: &Event) {
        let _ = self.put(event);
    }

    /// A process is about to be asked for.
    pub(crate) fn exec(&self, number: u64, exec: &Exec) -> Result<(), WriteError> {
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
        if exited.out_of_memory {
            self.try_put(&Event::Limit { which: audit::Limit::Memory });
        }
    }

    pub(crate) fn failed(&self, number: u64, failed: &Failed) {
        let step = Step::try_from(failed.step).map_or_else(|_| "?".to_owned(), |step| format!("{step:?}"));
        self.try_put(&Event::Failed { exec: number, step: Text::new(step), errno: failed.errno });
    }

    pub(crate) fn file(&self, event: &Event) {
        self.try_put(event);
    }

    pub(crate) fn terminal(&self, name: &str, what: TerminalChange) {
        self.try_put(&Event::Terminal { name: Text::new(name), what });
    }

    /// The end. Where something of the sandbox is kept, so is this, also when the power fails; whoever waits for the end
    /// of a run does not wait for the disk.
    pub(crate) fn stopped(&self, reason: StopReason, code: Option<i32>) {
        self.try_put(&Event::Stopped { reason, code });
        if self.stay != Stay::WithFirstClient {
            let _ = self.writer().sync();
        }
        failpoint::pass(Point::SupervisorEndRecorded);
    }
}
