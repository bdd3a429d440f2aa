//! Waits: for the walls to stand, for a plea, for either process to end. When one ends, the other does.

use std::os::unix::net::UnixStream;
use std::path::Path;

use failpoint::Point;
use handover::{Answer, KeeperEvent, Plea, Reason, State, Status, UNCLAIMED_FILE, now_ms};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::clean::Remains;
use crate::error::KeeperError;
use crate::sandbox::{Sandbox, remove_cgroup};
use crate::supervisor::Supervisor;

/// Watches until the sandbox is over, then ends everything inside and removes the cgroups. The supervisor is given
/// back: it still says its last words.
pub(crate) fn watch(
    mut sandbox: Sandbox,
    engine: &UnixStream,
    remains: &Remains,
) -> (Result<(), KeeperError>, Supervisor) {
    let watched = wait_for_walls(&mut sandbox, engine).and_then(|()| serve(&mut sandbox, engine));
    let Sandbox { plan, root, jailed, supervisor, kept } = sandbox;
    supervisor.dismiss();
    jailed.kill();
    failpoint::pass(Point::KeeperInitKilled);
    if plan.cgroup().is_none() {
        // Without a cgroup no note of one is needed any more, and there is time while the kernel takes all down.
        remains.empty();
    }
    jailed.reap();
    remove_cgroup(&plan);
    failpoint::pass(Point::KeeperCgroupsRemoved);
    let watched = watched.and_then(|end| match kept {
        Some(kept) => end.write(&kept),
        None => Ok(()),
    });
    failpoint::pass(Point::KeeperEndFiled);
    // The keeper is about to end; taking the plan apart would only take time.
    std::mem::forget((plan, root));
    (watched, supervisor)
}

/// Until init runs behind its walls, or failed to, or the supervisor did.
fn wait_for_walls(sandbox: &mut Sandbox, engine: &UnixStream) -> Result<(), KeeperError> {
    let mut descriptors = [
        PollFd::from_borrowed_fd(sandbox.jailed.status(), PollFlags::IN),
        PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
    ];
    wait(&mut descriptors)?;
    let supervisor_ended = !descriptors[1].revents().is_empty();
    sandbox.jailed.outcome(Some(&sandbox.root))?;
    // One that has ended well by now has served a command that was over at once.
    if supervisor_ended && let Some(error) = sandbox.supervisor.failure() {
        return Err(KeeperError::Unconfined(error));
    }
    failpoint::pass(Point::KeeperWallsStand);
    let (report, init, supervisor) =
        (sandbox.plan.report().clone(), sandbox.jailed.pid(), sandbox.supervisor.id());
    if let Some(kept) = &sandbox.kept {
        let keeper = std::process::id().cast_signed();
        let (since_ms, report) = (now_ms(), report.clone());
        record(kept, State::Running { since_ms, keeper, init, supervisor, report })?;
        failpoint::pass(Point::KeeperRunningFiled);
    }
    let covered_sockets = sandbox.root.covered_sockets().to_vec();
    let event = KeeperEvent::Ready { report, covered_sockets, init, supervisor };
    // An engine that is gone does not end the sandbox: its first client decides that.
    let _ = handover::send(engine, &event, &[]);
    failpoint::pass(Point::KeeperReadyTold);
    Ok(())
}

/// How a sandbox ended.
struct End {
    reason: Reason,
    code: Option<u8>,
}

impl End {
    const fn new(reason: Reason) -> Self {
        Self { reason, code: None }
    }

    fn write(&self, kept: &Path) -> Result<(), KeeperError> {
        record(kept, State::Stopped { at_ms: now_ms(), reason: self.reason, code: self.code })
    }
}

fn record(kept: &Path, state: State) -> Result<(), KeeperError> {
    let written = Status::new(state).write(kept);
    written.map_err(|source| KeeperError::File { path: kept.to_owned(), source })
}

/// Until the end is asked for or one of the two has ended; also until whoever made the sandbox is gone, where nobody
/// has been told of it by then.
fn serve(sandbox: &mut Sandbox, engine: &UnixStream) -> Result<End, KeeperError> {
    let mut kills = 0;
    let unclaimed = sandbox.kept.as_ref().map(|kept| kept.join(UNCLAIMED_FILE));
    let is_unclaimed = || unclaimed.as_ref().is_some_and(|file| file.exists());
    let mut watched = if is_unclaimed() { 4 } else { 3 };
    loop {
        let mut descriptors = [
            PollFd::from_borrowed_fd(sandbox.jailed.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.socket(), PollFlags::IN),
            PollFd::new(engine, PollFlags::IN),
        ];
        wait(&mut descriptors[..watched])?;
        if !descriptors[3].revents().is_empty() {
            if is_unclaimed() {
                return Ok(End::new(Reason::Stopped));
            }
            watched = 3;
            continue;
        }
        let asked = !descriptors[2].revents().is_empty();
        let ended = descriptors[..2].iter().any(|descriptor| !descriptor.revents().is_empty());
        if ended && !asked {
            return Ok(End::new(Reason::Killed));
        }
        let plea = sandbox.supervisor.plea();
        failpoint::pass(Point::KeeperPleaHeard);
        match plea {
            Plea::Lost => return Ok(End::new(Reason::Killed)),
            Plea::End => return Ok(End::new(Reason::Stopped)),
            Plea::Exited(code) => return Ok(End { reason: Reason::Exited, code: Some(code) }),
            Plea::OutOfMemory => {
                let now = sandbox.plan.cgroup().map_or(0, jail::Cgroup::out_of_memory_kills);
                let answer = if now > kills { Answer::Yes } else { Answer::No };
                kills = now;
                if sandbox.supervisor.answer(answer).is_err() {
                    return Ok(End::new(Reason::Killed));
                }
            }
        }
    }
}

fn wait(descriptors: &mut [PollFd<'_>]) -> Result<(), KeeperError> {
    loop {
        match poll(descriptors, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(KeeperError::Watch(errno.into())),
        }
    }
}
