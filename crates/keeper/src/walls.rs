//! Until the walls stand and init runs behind them, or it is known why not.

use std::time::{Duration, Instant};

use handover::{Inward, Plea};
use rustix::event::{PollFd, PollFlags};

use crate::end::End;
use crate::error::KeeperError;
use crate::limits::Counts;
use crate::runtime::{Heard, PATIENCE, silent_end};
use crate::sandbox::Sandbox;
use crate::waiting::{Waited, wait, wait_until};
use crate::watch::{Answered, answer};

/// How long a runtime may take to say why it has no init any more.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Until init runs behind its walls, or failed to, or the supervisor did; or until it is over already.
pub(crate) fn wait_for_walls(
    sandbox: &mut Sandbox,
    counts: &mut Counts,
    heard: &mut Heard,
) -> Result<Option<End>, KeeperError> {
    let mut descriptors = [
        PollFd::from_borrowed_fd(sandbox.jailed.status(), PollFlags::IN),
        PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
    ];
    wait(&mut descriptors)?;
    let supervisor_ended = !descriptors[1].revents().is_empty();
    sandbox.plan.hear(sandbox.jailed.outcome(Some(&sandbox.root)))?;
    // One that has ended well by now has served a command that was over at once.
    if supervisor_ended && let Some(error) = sandbox.supervisor.failure() {
        return Err(KeeperError::Unconfined(error));
    }
    match sandbox.way {
        Inward::Straight => Ok(None),
        Inward::ThroughRuntime | Inward::Copied | Inward::ThroughKernel => {
            wait_for_init(sandbox, counts, heard)
        }
    }
}

/// A runtime has been started, and only the supervisor hears whether init was, too. One that ends before, or takes for ever,
/// has failed.
fn wait_for_init(
    sandbox: &mut Sandbox,
    counts: &mut Counts,
    heard: &mut Heard,
) -> Result<Option<End>, KeeperError> {
    let program = sandbox.backend.program().unwrap_or_default();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(sandbox.jailed.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.socket(), PollFlags::IN),
        ];
        descriptors.extend(sandbox.plan.complaining().map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)));
        let waited = wait_until(&mut descriptors, Some(deadline))?;
        let [runtime, supervisor, asked] = [0, 1, 2].map(|at| !descriptors[at].revents().is_empty());
        heard.listen(sandbox.plan.complaints());
        // Looked at each time: one that complains without end is not waited for either.
        if waited == Waited::InVain || Instant::now() >= deadline || heard.is_too_much() {
            let hangs = format!("it has not started init within {} seconds", PATIENCE.as_secs());
            return Err(KeeperError::Runtime { program, source: heard.reason(&hangs) });
        }
        if asked {
            match sandbox.supervisor.plea() {
                None => return Ok(Some(End::of_supervisor(&sandbox.supervisor))),
                Some(Plea::Up) => return Ok(None),
                // Its init is gone, or never was: the runtime is about to say why, if it can.
                Some(Plea::Lost) => return failed(sandbox, heard),
                Some(plea) => match answer(sandbox, counts, plea) {
                    Answered::Over(end) => return Ok(Some(end)),
                    Answered::GoesOn => {}
                },
            }
        } else if runtime {
            return failed(sandbox, heard);
        } else if supervisor {
            return Ok(Some(End::of_supervisor(&sandbox.supervisor)));
        }
    }
}

fn failed(sandbox: &mut Sandbox, heard: &mut Heard) -> Result<Option<End>, KeeperError> {
    let program = sandbox.backend.program().unwrap_or_default();
    hear_out(sandbox, heard)?;
    let source = heard.reason(&silent_end(program, sandbox.jailed.ending()));
    Err(KeeperError::Runtime { program, source })
}

/// Gives a runtime that has no init any more a moment to say why, and to end.
pub(crate) fn hear_out(sandbox: &mut Sandbox, heard: &mut Heard) -> Result<(), KeeperError> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        heard.listen(sandbox.plan.complaints());
        if heard.is_too_much() || Instant::now() >= deadline {
            return Ok(());
        }
        let mut descriptors = vec![PollFd::from_borrowed_fd(sandbox.jailed.pidfd(), PollFlags::IN)];
        descriptors.extend(sandbox.plan.complaining().map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)));
        let waited = wait_until(&mut descriptors, Some(deadline))?;
        let has_ended = !descriptors[0].revents().is_empty();
        if has_ended || waited == Waited::InVain {
            heard.listen(sandbox.plan.complaints());
            return Ok(());
        }
    }
}
