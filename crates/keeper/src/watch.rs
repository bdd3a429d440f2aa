//! Waits: for a plea, and for either process to end. When one ends, the other does.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use audit::{Event, Limit, OurProcess, StopReason};
use failpoint::Point;
use handover::{Answer, KeeperEvent, LAYER, Plea, Reason, State, UNCLAIMED_FILE, UPPER, now_ms};
use jail::LivingCgroup;
use rustix::event::{PollFd, PollFlags};

use crate::clean::{DISK_FULL, PAUSED_FILE, Remains};
use crate::disk;
use crate::end::{End, Lost, file};
use crate::error::KeeperError;
use crate::limits::Counts;
use crate::runtime::{Heard, silent_end};
use crate::sandbox::{Sandbox, remove_cgroup};
use crate::supervisor::Supervisor;
use crate::waiting::{Waited, wait_until};
use crate::walls::{hear_out, wait_for_walls};

/// How long past its life time a sandbox may take to end by itself.
const OVERTIME: Duration = Duration::from_secs(20);

/// How long a supervisor may take to say how what it had emptied has ended: its record may be on a slow disk.
const PARTING: Duration = Duration::from_secs(30);

/// Watches until the sandbox is over, then ends everything inside and removes the cgroups. The supervisor is given
/// back where it still says its last words.
pub(crate) fn watch(mut sandbox: Sandbox, engine: &UnixStream, remains: &Remains) -> Watched {
    let mut counts = Counts::default();
    let mut heard = Heard::default();
    let watched = wait_for_walls(&mut sandbox, &mut counts, &mut heard).and_then(|over| match over {
        Some(end) => Ok(end),
        None => {
            tell_ready(&sandbox, engine).and_then(|()| serve(&mut sandbox, engine, &mut counts, &mut heard))
        }
    });
    // A kernel of the sandbox's own that is killed for want of memory takes all of it along.
    let watched = watched.map(|end| match end.reason {
        Reason::Killed if counts.has_run_out(sandbox.plan.cgroup()) => End::new(Reason::Memory),
        _ => end,
    });
    let watched = watched.and_then(|end| ask_why(&mut sandbox, end, &mut heard));
    let Sandbox { plan, root, jailed, supervisor, record, kept, .. } = sandbox;
    supervisor.dismiss();
    jailed.kill();
    if let Some(cgroup) = plan.cgroup() {
        // What is frozen dies only now.
        cgroup.thaw();
    }
    failpoint::pass(Point::KeeperInitKilled);
    if plan.cgroup().is_none() {
        // Without a cgroup no note of one is needed any more, and there is time while the kernel takes all down.
        remains.empty();
    }
    jailed.reap();
    remove_cgroup(&plan);
    failpoint::pass(Point::KeeperCgroupsRemoved);
    let supervisor = match &watched {
        Ok(End { reason: Reason::Exited | Reason::Stopped | Reason::Idle, .. }) => Some(supervisor),
        // It may not have said how it ended. What became of it is on record before anybody hears of the end.
        Ok(End { reason: Reason::Killed | Reason::Memory | Reason::Expired, .. }) | Err(_) => {
            let expired = matches!(watched, Ok(End { reason: Reason::Expired, .. }));
            let reason = if expired { StopReason::Time } else { StopReason::Failed };
            let killed = Event::Lost { process: OurProcess::Supervisor };
            let failed = Event::Stopped { reason, code: None };
            let was_killed = supervisor.destroy();
            if matches!(watched, Ok(End { reason: Reason::Memory, .. })) {
                let _ = record.conclude(&Event::Limit { which: Limit::Memory });
            }
            // What could not be written now is, when the sandbox is started again.
            let _ = record.conclude(if was_killed { &killed } else { &failed });
            None
        }
    };
    let watched = watched.and_then(|end| {
        if let Some(kept) = kept {
            end.write(&kept)?;
        }
        Ok(end)
    });
    failpoint::pass(Point::KeeperEndFiled);
    // The keeper is about to end; taking the plan apart would only take time.
    std::mem::forget((plan, root));
    Watched { told: watched, supervisor }
}

/// What came of a sandbox.
pub(crate) struct Watched {
    /// How it ended, or why it did not come to be.
    pub(crate) told: Result<End, KeeperError>,
    /// One that still says its last words.
    pub(crate) supervisor: Option<Supervisor>,
}

/// Finds out why what is inside is gone, where a runtime can tell: it is about to end as well, and has a moment for it.
fn ask_why(sandbox: &mut Sandbox, end: End, heard: &mut Heard) -> Result<End, KeeperError> {
    let Some(program) = sandbox.backend.program().filter(|_| end.lost == Some(Lost::Inside)) else {
        return Ok(end);
    };
    hear_out(sandbox, heard)?;
    let otherwise = silent_end(program, sandbox.jailed.ending());
    Ok(End { why: Some(heard.reason(&otherwise).to_string()), ..end })
}

/// Tells everybody that it runs.
fn tell_ready(sandbox: &Sandbox, engine: &UnixStream) -> Result<(), KeeperError> {
    failpoint::pass(Point::KeeperWallsStand);
    let (report, init, supervisor) =
        (sandbox.plan.report().clone(), sandbox.jailed.pid(), sandbox.supervisor.id());
    if let Some(kept) = &sandbox.kept {
        let keeper = std::process::id().cast_signed();
        let (since_ms, report) = (now_ms(), report.clone());
        file(kept, State::Running { since_ms, keeper, init, supervisor, report })?;
        failpoint::pass(Point::KeeperRunningFiled);
    }
    let mut covered_sockets = sandbox.root.covered_sockets().to_vec();
    let absent = sandbox.tree.iter().flat_map(|tree| &tree.covered);
    covered_sockets.extend(absent.map(PathBuf::from));
    let event = KeeperEvent::Ready { report, covered_sockets, init, supervisor };
    // An engine that is gone does not end the sandbox: its first client decides that.
    let _ = handover::send(engine, &event, &[]);
    failpoint::pass(Point::KeeperReadyTold);
    Ok(())
}

/// Until the end is asked for or one of the two has ended; also until whoever made the sandbox is gone, where nobody
/// has been told of it by then.
fn serve(
    sandbox: &mut Sandbox,
    engine: &UnixStream,
    counts: &mut Counts,
    heard: &mut Heard,
) -> Result<End, KeeperError> {
    // The supervisor ends it in time and with good grace; one that does not is not asked again.
    let mut deadline = sandbox.lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime + OVERTIME));
    let disk = sandbox.kept.as_ref().map(|kept| {
        let mut trees = jail::KEPT.map(|(name, _)| kept.join(name)).to_vec();
        // Beside it is only what the kernel works with, in a directory that it closes.
        trees.extend(sandbox.tree.is_some().then(|| kept.join(LAYER).join(UPPER)));
        disk::watch(trees, sandbox.disk).map_err(KeeperError::Watch)
    });
    let disk = disk.transpose()?;
    let unclaimed = sandbox.kept.as_ref().map(|kept| kept.join(UNCLAIMED_FILE));
    let is_unclaimed = || unclaimed.as_ref().is_some_and(|file| file.exists());
    let mut maker = is_unclaimed().then_some(engine);
    // Whether what is inside ends as it was asked to; how it ended is about to be said.
    let mut is_emptied = false;
    loop {
        // Looked at each time: one that pleads without end is not waited for either.
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(too_late(sandbox, is_emptied));
        }
        let unexpected = if is_emptied { PollFlags::empty() } else { PollFlags::IN };
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(sandbox.jailed.pidfd(), unexpected),
            PollFd::from_borrowed_fd(sandbox.supervisor.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(sandbox.supervisor.socket(), PollFlags::IN),
        ];
        descriptors.extend(disk.as_ref().map(|disk| PollFd::new(disk, PollFlags::IN)));
        descriptors.extend(maker.map(|maker| PollFd::new(maker, PollFlags::IN)));
        let complaining = sandbox.plan.complaining().filter(|_| !is_emptied);
        descriptors.extend(complaining.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)));
        if wait_until(&mut descriptors, deadline)? == Waited::InVain {
            return Ok(too_late(sandbox, is_emptied));
        }
        let mut others = descriptors[3..].iter().map(|descriptor| !descriptor.revents().is_empty());
        let too_much = disk.is_some() && others.next() == Some(true);
        if maker.is_some() && others.next() == Some(true) {
            if is_unclaimed() {
                return Ok(End::new(Reason::Killed));
            }
            maker = None;
        }
        let [inside, supervisor, asked] = [0, 1, 2].map(|at| !descriptors[at].revents().is_empty());
        heard.listen(sandbox.plan.complaints());
        // Whichever of the two ends takes the other along, and may be seen to end later. A supervisor that is there says what
        // became of the inside; one that is gone has ended first.
        let asked = asked || (inside && sandbox.supervisor.speaks_or_is_gone());
        if heard.is_too_much() || (inside && !asked) {
            return Ok(End::of_inside());
        }
        if supervisor && !asked {
            return Ok(End::of_supervisor(&sandbox.supervisor));
        }
        if let Some(disk) = disk.as_ref().filter(|_| too_much) {
            disk::hear(disk);
            if let Some(answer) = hold(sandbox) {
                let _ = sandbox.supervisor.answer(&answer);
            }
        }
        if !asked {
            continue;
        }
        let plea = sandbox.supervisor.plea();
        failpoint::pass(Point::KeeperPleaHeard);
        // What is inside ends with its supervisor, and a runtime that is asked why would only say that it has ended.
        let Some(plea) = plea else { return Ok(End::of_supervisor(&sandbox.supervisor)) };
        if plea == Plea::Empty {
            // Before the answer: it takes its time to go.
            sandbox.jailed.kill();
            is_emptied = true;
            let parting = Instant::now() + PARTING;
            deadline = Some(deadline.map_or(parting, |deadline| deadline.min(parting)));
        }
        if let Answered::Over(end) = answer(sandbox, counts, plea) {
            return Ok(end);
        }
    }
}

/// The end of one that should have been over by itself.
fn too_late(sandbox: &Sandbox, is_emptied: bool) -> End {
    if is_emptied { End::of_supervisor(&sandbox.supervisor) } else { End::new(Reason::Expired) }
}

/// What came of a plea.
pub(crate) enum Answered {
    Over(End),
    GoesOn,
}

pub(crate) fn answer(sandbox: &Sandbox, counts: &mut Counts, plea: Plea) -> Answered {
    let answer = match plea {
        Plea::Lost => return Answered::Over(End::of_inside()),
        Plea::End => return Answered::Over(End::new(Reason::Stopped)),
        Plea::Expired => return Answered::Over(End::new(Reason::Expired)),
        Plea::Idle => return Answered::Over(End::new(Reason::Idle)),
        Plea::Exited(code) => return Answered::Over(End::exited(code)),
        Plea::Limits | Plea::Empty => Answer::Limits(counts.reached(sandbox.plan.cgroup())),
        Plea::Part => sandbox.record.next_part(),
        Plea::Up => return Answered::GoesOn,
    };
    match sandbox.supervisor.answer(&answer) {
        Ok(()) => Answered::GoesOn,
        Err(_) => Answered::Over(End::of_supervisor(&sandbox.supervisor)),
    }
}

/// Freezes everything, as more is on the disk than may be. Where there is no cgroup for that, the supervisor sees to it;
/// where the kernel could not, it is tried again when there is still more.
fn hold(sandbox: &Sandbox) -> Option<Answer> {
    // Other commands see it there, and one of them lets it go on.
    let paused = sandbox.runtime.join(PAUSED_FILE);
    // Whole or not at all: half of it would be a pause that somebody asked for.
    let beside = paused.with_extension("new");
    if fs::write(&beside, DISK_FULL).and_then(|()| fs::rename(&beside, &paused)).is_err() {
        let _ = fs::remove_file(&beside);
        // Without the reason it is a pause all the same; what nobody could see, nobody would let go on.
        fs::File::create(&paused).ok()?;
    }
    let cgroup = sandbox.plan.cgroup().and_then(|cgroup| LivingCgroup::of(&cgroup.directories()));
    // A kernel of the sandbox's own does not survive being frozen in the middle of what it does.
    let cgroup = cgroup.filter(|cgroup| !sandbox.backend.has_own_kernel() && cgroup.can_freeze());
    match cgroup.map(|cgroup| cgroup.freeze()) {
        Some(Ok(())) => Some(Answer::DiskFrozen),
        None => Some(Answer::DiskGoesOn),
        Some(Err(_)) => {
            let _ = fs::remove_file(paused);
            None
        }
    }
}
