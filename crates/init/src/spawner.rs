//! The thread that every process is forked from. It alone is inside the Landlock domain, so that all processes
//! share one and the rest of init stands outside. It waits for nobody: whether the program could be executed
//! is told over a pipe that init's main thread reads.

mod sys;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{getgid, getuid};
use tokio::io::Interest;
use tokio::sync::oneshot;
use wire::Step;

use crate::domain::{Domain, DomainError};
use crate::ends::{Ends, Pair};
use crate::plan::Plan;
use crate::reaper::{Children, Exit};
use crate::weaken::Weaken;

/// Enough for the deepest call of the thread and of the processes that it forks.
const STACK: usize = 128 * 1024;

/// Why a process could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

impl Failure {
    pub(crate) fn new(step: Step, error: &io::Error) -> Self {
        Self { step, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// A process that was forked and is on its way to its program.
#[derive(Debug)]
pub(crate) struct Forked {
    pub(crate) pid: i32,
    pub(crate) exit: oneshot::Receiver<Exit>,
    /// Ends empty when the program runs, else after a report.
    pub(crate) report: OwnedFd,
    /// Our ends of its streams.
    pub(crate) ends: Ends,
}

/// Waits until the program runs, or says why it does not.
pub(crate) async fn executed(report: OwnedFd) -> Result<(), Failure> {
    let failed = |error| Failure::new(Step::Fork, &error);
    let report = crate::sys::register(report, Interest::READABLE).map_err(failed)?;
    loop {
        let mut ready = report.readable().await.map_err(failed)?;
        let mut bytes = [0; sys::REPORT_LENGTH];
        match ready.try_io(|report| Ok(rustix::io::read(report, &mut bytes)?)) {
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(_)) => return Err(sys::read_report(bytes)),
            Ok(Err(error)) => return Err(failed(error)),
            Err(_would_block) => {}
        }
    }
}

/// Why there is no spawner.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Thread(#[from] io::Error),
}

/// What all processes are made with.
#[derive(Debug)]
struct Mould {
    weaken: Weaken,
    /// The capabilities that each has to drop from its bounding set.
    bounding_set: Vec<usize>,
}

#[derive(Debug)]
struct Job {
    plan: Plan,
    answer: oneshot::Sender<Result<Forked, Failure>>,
}

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

/// A spawner whose thread is on its way into the domain.
#[derive(Debug)]
pub(crate) struct Entering {
    spawner: Spawner,
    entered: mpsc::Receiver<Result<(), DomainError>>,
}

impl Spawner {
    /// Starts the thread, which enters the domain.
    pub(crate) fn start(
        domain: Option<Domain>,
        weaken: Weaken,
        children: Arc<Children>,
    ) -> io::Result<Entering> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (entered, answer) = mpsc::channel();
        thread::Builder::new().name("spawner".into()).stack_size(STACK).spawn(move || {
            // A forked process starts with this mask: no signal can reach it before its handlers are reset.
            crate::sys::block_signals();
            sys::reset_inherited_signals();
            let mould = Mould { weaken, bounding_set: sys::bounding_set() };
            let result = domain.map_or(Ok(()), |domain| domain.enter());
            let failed = result.is_err();
            // The other side waits for exactly this.
            let _ = entered.send(result);
            if failed {
                return;
            }
            for Job { plan, answer } in queue {
                // Whoever asked may be gone; then its end of the streams is closed here.
                let _ = answer.send(fork(&plan, &mould, &children));
            }
        })?;
        Ok(Entering { spawner: Self { jobs }, entered: answer })
    }

    /// Forks a process according to the plan.
    pub(crate) async fn fork(&self, plan: Plan) -> Result<Forked, Failure> {
        let gone = Failure { step: Step::Fork, errno: libc::EIO };
        let (answer, forked) = oneshot::channel();
        self.jobs.send(Job { plan, answer }).map_err(|_| gone)?;
        forked.await.map_err(|_| gone)?
    }
}

impl Entering {
    /// Waits until the thread is inside the domain.
    pub(crate) fn finish(self) -> Result<Spawner, StartError> {
        self.entered.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))??;
        Ok(self.spawner)
    }
}

fn fork(plan: &Plan, mould: &Mould, children: &Children) -> Result<Forked, Failure> {
    let pair = streams_of(plan).map_err(|error| Failure::new(Step::Streams, &error))?;
    let (report, reporting) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .map_err(|error| Failure::new(Step::Streams, &error.into()))?;
    let launch = sys::Launch::new(plan, mould, &pair.inside, &reporting);
    let (pid, exit) = children.record(|| launch.fork()).map_err(|error| Failure::new(Step::Fork, &error))?;
    Ok(Forked { pid, exit, report, ends: pair.outside })
}

/// The streams belong to the process's user, so that it can open them again by name (`/dev/stdout`).
fn streams_of(plan: &Plan) -> io::Result<Pair> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let foreign = (plan.uid, plan.gid) != (uid, gid);
    if foreign {
        crate::sys::set_file_ids(plan.uid, plan.gid);
    }
    let pair = Pair::new(plan.terminal);
    if foreign {
        crate::sys::set_file_ids(uid, gid);
    }
    pair
}
