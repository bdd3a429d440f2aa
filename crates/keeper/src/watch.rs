//! Waits: for the walls to stand, for a plea, for either process to end. When one ends, the other does.

use std::os::unix::net::UnixStream;

use handover::{Answer, KeeperEvent, Plea};
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
    remains: &mut Remains,
) -> (Result<(), KeeperError>, Supervisor) {
    let watched = wait_for_walls(&mut sandbox, engine).and_then(|()| serve(&mut sandbox));
    let Sandbox { plan, root, jailed, supervisor } = sandbox;
    supervisor.dismiss();
    jailed.kill();
    if plan.cgroup().is_none() {
        // Without a cgroup no note of one is needed any more, and there is time while the kernel takes all down.
        // What could not be removed is tried again, and told, in the end.
        let _ = remains.remove();
    }
    jailed.reap();
    remove_cgroup(&plan);
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
    let event = KeeperEvent::Ready {
        report: sandbox.plan.report().clone(),
        covered_sockets: sandbox.root.covered_sockets().to_vec(),
        init: sandbox.jailed.pid(),
        supervisor: sandbox.supervisor.id(),
    };
    // An engine that is gone does not end the sandbox: its first client decides that.
    let _ = handover::send(engine, &event, &[]);
    Ok(())
}

/// Until the end is asked for or one of the two has ended.
fn serve(sandbox: &mut Sandbox) -> Result<(), KeeperError> {
    let mut kills = 0;
    loop {
        let mut descriptors = [
            PollFd::from_borrowed_fd(sandbox.jailed.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.socket(), PollFlags::IN),
        ];
        wait(&mut descriptors)?;
        let asked = !descriptors[2].revents().is_empty();
        let ended = descriptors[..2].iter().any(|descriptor| !descriptor.revents().is_empty());
        if ended && !asked {
            return Ok(());
        }
        match sandbox.supervisor.plea() {
            Plea::End => return Ok(()),
            Plea::OutOfMemory => {
                let now = sandbox.plan.cgroup().map_or(0, jail::Cgroup::out_of_memory_kills);
                let answer = if now > kills { Answer::Yes } else { Answer::No };
                kills = now;
                if sandbox.supervisor.answer(answer).is_err() {
                    return Ok(());
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
