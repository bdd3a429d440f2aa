//! A process between its fork and its program. It still runs in what init has laid out for it, which is kept
//! until it has left: whatever becomes of those who wait for it, and however long it takes.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::sync::oneshot;
use wire::Step;

use super::sys::{REPORT_LENGTH, read_report};
use super::{Executed, Failure, Forked, GONE};
use crate::reaper::Children;

/// Follows a process to its program, or to where it says why it does not run it. The report ends when the memory is no
/// longer used, and the fork has long been told of by then: only one of the two wakes anybody.
pub(super) async fn follow(
    report: OwnedFd,
    forked: oneshot::Receiver<Result<Forked, Failure>>,
    mut told: oneshot::Sender<Result<Executed, Failure>>,
    children: Arc<Children>,
) {
    let mut words = pin!(last_words(report));
    let heard = tokio::select! {
        heard = &mut words => Some(heard),
        // It may be stuck on a slow file system, and nobody is left to wait for it.
        () = told.closed() => None,
    };
    let Forked { process, launch } = match forked.await.unwrap_or(Err(GONE)) {
        Ok(forked) => forked,
        Err(failure) => return drop(told.send(Err(failure))),
    };
    let pid = process.pid;
    let heard = match heard {
        Some(heard) => heard,
        None => {
            children.end(pid, libc::SIGKILL);
            words.await
        }
    };
    let outcome = match heard {
        Ok(failure) => {
            launch.free();
            failure.map_or(Ok(process), Err)
        }
        // Nobody knows whether its memory is still used.
        Err(error) => Err(Failure::new(Step::Fork, &error)),
    };
    let runs = outcome.is_ok();
    if told.send(outcome).is_err() || !runs {
        children.end(pid, libc::SIGKILL);
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
