//! A process between its fork and its program. It still runs in what init has laid out for it, which is kept
//! until it has left: whatever becomes of those who wait for it, and however long it takes.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use wire::Step;

use super::Failure;
use super::sys::{Launch, REPORT_LENGTH, read_report};

/// The memory of a leaving process and the pipe that tells of it: the pipe ends when the memory is no longer
/// used, after a report where the program does not run.
#[derive(Debug)]
pub(crate) struct Leaving {
    report: OwnedFd,
    /// Never freed but by `gone`.
    launch: ManuallyDrop<Box<Launch>>,
}

impl Leaving {
    pub(super) fn new(report: OwnedFd, launch: Box<Launch>) -> Self {
        Self { report, launch: ManuallyDrop::new(launch) }
    }

    /// Waits until the program runs, or says why it does not. Dropping this waits no longer, but keeps the memory.
    pub(crate) async fn executed(self) -> Result<(), Failure> {
        let gone = Failure { step: Step::Fork, errno: libc::EIO };
        tokio::spawn(self.gone()).await.unwrap_or(Err(gone))
    }

    async fn gone(self) -> Result<(), Failure> {
        let Self { report, launch } = self;
        let outcome = last_words(report).await.map_err(|error| Failure::new(Step::Fork, &error))?;
        drop(ManuallyDrop::into_inner(launch));
        outcome.map_or(Ok(()), Err)
    }
}

/// Reads the report to its end: what reported a failure still has to exit.
async fn last_words(report: OwnedFd) -> io::Result<Option<Failure>> {
    let report = crate::sys::register(report, Interest::READABLE)?;
    let mut failure = None;
    loop {
        let mut ready = report.readable().await?;
        let mut bytes = [0; REPORT_LENGTH];
        match ready.try_io(|report| Ok(rustix::io::read(report, &mut bytes)?)) {
            Ok(Ok(0)) => return Ok(failure),
            Ok(Ok(_)) => failure = Some(read_report(bytes)),
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}
