//! The thread that every process is forked from. It alone is inside the Landlock domain, so that all processes
//! share one and the rest of init stands outside. It waits for nobody: whether the program could be executed
//! is told over a pipe that init's main thread reads, and nothing wakes that thread before. Where there is no such domain
//! to be in, on a kernel of the sandbox's own, init's main thread does it.

mod leaving;
mod sys;

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::{Notify, oneshot};
use wire::Step;

use crate::arguments::Kernel;
use crate::domain::{Domain, DomainError};
use crate::ends::{Ends, Pair};
use crate::plan::Plan;
use crate::reaper::{Children, Exit};
use crate::sys::Ids;
use crate::weaken::{Wall, Weaken};

/// Enough for the deepest call of the thread.
const STACK: usize = 128 * 1024;

/// Why a process could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

/// There is no spawner any more.
const GONE: Failure = Failure { step: Step::Fork, errno: libc::EIO };

impl Failure {
    pub(crate) fn new(step: Step, error: &io::Error) -> Self {
        Self { step, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// A process whose program runs.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) pid: i32,
    pub(crate) exit: oneshot::Receiver<Exit>,
    /// Our ends of its streams.
    pub(crate) ends: Ends,
}

/// A process that was forked and may still be in what init laid out for it.
#[derive(Debug)]
struct Forked {
    process: Executed,
    launch: Unfreed,
}

/// The memory of a process on its way to its program. It is freed by whoever knows that the process has left it, and
/// by nobody else.
#[derive(Debug)]
struct Unfreed(ManuallyDrop<Box<sys::Launch>>);

impl Unfreed {
    fn new(launch: Box<sys::Launch>) -> Self {
        Self(ManuallyDrop::new(launch))
    }

    fn free(self) {
        drop(ManuallyDrop::into_inner(self.0));
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

/// What a new process runs in until it becomes its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Init's own.
    Shared,
    /// A copy of init's.
    Copied,
}

impl Memory {
    /// A process that becomes another user lets its memory be read by that user where the machine says so for
    /// set-user-id programs; such a machine gets a copy. gVisor's kernel has no such setting, and never lets it.
    fn on(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Own => Self::Shared,
            Kernel::Host => std::fs::read("/proc/sys/fs/suid_dumpable")
                .map_or(Self::Copied, |setting| Self::under(&setting)),
        }
    }

    fn under(setting: &[u8]) -> Self {
        match setting.trim_ascii() {
            b"0" | b"2" => Self::Shared,
            _ => Self::Copied,
        }
    }
}

/// What all processes are made with.
#[derive(Debug)]
struct Mould {
    weaken: Weaken,
    kernel: Kernel,
    memory: Memory,
    /// Whose init itself is.
    own: Ids,
}

impl Mould {
    fn new(weaken: Weaken, kernel: Kernel) -> Self {
        Self { weaken, kernel, memory: Memory::on(kernel), own: Ids::own() }
    }

    /// Whom a process belongs to, where that is not who init is.
    fn other_user(&self, plan: &Plan) -> Option<Ids> {
        Some(Ids { user: plan.uid, group: plan.gid }).filter(|ids| *ids != self.own)
    }
}

#[derive(Debug)]
struct Job {
    plan: Plan,
    /// Where the process says why it did not become its program; it ends when the process has left init's memory.
    reporting: OwnedFd,
    answer: oneshot::Sender<Result<Forked, Failure>>,
}

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Spawner {
    forge: Forge,
    children: Arc<Children>,
}

/// Where processes are forked.
#[derive(Debug)]
enum Forge {
    /// By a thread of its own.
    Thread(mpsc::Sender<Job>),
    /// By whoever asks: on gVisor's kernel a second thread costs milliseconds, and so does each word to it.
    Here(Mould),
}

/// A spawner's thread on its way into the domain. Nobody is woken when it is there, as nobody waits for that.
#[derive(Debug)]
pub(crate) struct Entering {
    /// Whether it is; nothing where there is no thread.
    entered: Option<mpsc::Receiver<Result<(), StartError>>>,
    refused: Arc<Notify>,
}

impl Entering {
    /// Resolves if the thread cannot enter.
    pub(crate) async fn refused(&self) {
        self.refused.notified().await;
    }

    /// Waits until it is known whether the thread has entered.
    pub(crate) fn finish(self) -> Result<(), StartError> {
        match self.entered {
            Some(entered) => entered.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?,
            None => Ok(()),
        }
    }
}

impl Spawner {
    /// Starts the thread, which enters the domain, or makes the caller's one that can fork. The thread starts nothing
    /// before it is inside; what it is asked for waits, for ever where it is refused.
    pub(crate) fn start(
        domain: Option<Domain>,
        kernel: Kernel,
        weaken: Weaken,
        children: Arc<Children>,
    ) -> Result<(Self, Entering), StartError> {
        if kernel == Kernel::Own && domain.is_none() {
            // Nothing was ever ignored on a kernel that has just begun, so that nothing is to be reset.
            crate::sys::block_signals();
            forswear(&weaken, kernel, None)?;
            let forge = Forge::Here(Mould::new(weaken, kernel));
            return Ok((Self { forge, children }, Entering { entered: None, refused: Arc::default() }));
        }
        let (jobs, queue) = mpsc::channel::<Job>();
        let forking = Arc::clone(&children);
        let (enter, entered) = mpsc::channel();
        let refused = Arc::new(Notify::new());
        let refuse = Arc::clone(&refused);
        thread::Builder::new().name("spawner".into()).stack_size(STACK).spawn(move || {
            // A forked process starts with this mask: no signal can reach it before its handlers are reset.
            crate::sys::block_signals();
            sys::reset_inherited_signals();
            let result = forswear(&weaken, kernel, domain);
            let is_refused = result.is_err();
            let _ = enter.send(result);
            if is_refused {
                refuse.notify_one();
                // The other side ends the process; until then nobody is told of a process that could not be started.
                loop {
                    thread::park();
                }
            }
            let mould = Mould::new(weaken, kernel);
            for Job { plan, reporting, answer } in queue {
                // Whoever follows the process to its program waits for this, whatever becomes of the others.
                let _ = answer.send(fork(plan, &reporting, &mould, &forking));
            }
        })?;
        let entering = Entering { entered: Some(entered), refused };
        Ok((Self { forge: Forge::Thread(jobs), children }, entering))
    }

    /// Starts a process according to the plan: until its program runs. One that is no longer waited for is killed.
    pub(crate) async fn execute(&self, plan: Plan) -> Result<Executed, Failure> {
        let (report, reporting) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|error| Failure::new(Step::Streams, &error.into()))?;
        let (answer, forked) = oneshot::channel();
        match &self.forge {
            Forge::Thread(jobs) => jobs.send(Job { plan, reporting, answer }).map_err(|_| GONE)?,
            Forge::Here(mould) => {
                let _ = answer.send(fork(plan, &reporting, mould, &self.children));
                // The report ends when nobody else can make it.
                drop(reporting);
            }
        }
        let (told, executed) = oneshot::channel();
        // A task of its own, as it is followed for as long as it takes, whoever waits.
        tokio::spawn(leaving::follow(report, forked, told, Arc::clone(&self.children)));
        executed.await.map_err(|_| GONE)?
    }
}

/// Gives up, for this thread and all that it will make, what no process inside may have.
fn forswear(weaken: &Weaken, kernel: Kernel, domain: Option<Domain>) -> Result<(), StartError> {
    if weaken.keeps(Wall::Capabilities) && !(kernel == Kernel::Own && sys::has_empty_bounding_set()) {
        sys::empty_bounding_set()?;
    }
    if weaken.keeps(Wall::NoNewPrivileges) {
        rustix::thread::set_no_new_privs(true).map_err(io::Error::from)?;
    }
    Ok(domain.map_or(Ok(()), |domain| domain.enter())?)
}

fn fork(plan: Plan, reporting: &OwnedFd, mould: &Mould, children: &Children) -> Result<Forked, Failure> {
    let pair = streams_of(&plan, mould).map_err(|error| Failure::new(Step::Streams, &error))?;
    let mut launch = sys::Launch::new(plan, mould, &pair.inside, reporting);
    let (pid, exit) =
        children.record(|| launch.fork(mould.memory)).map_err(|error| Failure::new(Step::Fork, &error))?;
    let process = Executed { pid, exit, ends: pair.outside };
    Ok(Forked { process, launch: Unfreed::new(launch) })
}

/// The streams belong to the process's user, so that it can open them again by name (`/dev/stdout`).
fn streams_of(plan: &Plan, mould: &Mould) -> io::Result<Pair> {
    let make = || Pair::new(plan.terminal, plan.output.as_ref().map(AsFd::as_fd));
    match (mould.other_user(plan), mould.kernel) {
        (None, _) => make(),
        (Some(other), Kernel::Host) => {
            crate::sys::set_file_ids(other);
            let pair = make();
            crate::sys::set_file_ids(mould.own);
            pair
        }
        // It has no ids for files alone. What is real stays: to whoever signals or traces init it is who it was.
        (Some(other), Kernel::Own) => crate::sys::act_as(other, mould.own, make)?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_only_where_no_user_could_read_it() {
        assert_eq!(Memory::under(b"0\n"), Memory::Shared);
        assert_eq!(Memory::under(b"2\n"), Memory::Shared, "readable by root alone");
        assert_eq!(Memory::under(b"1\n"), Memory::Copied);
        assert_eq!(Memory::under(b""), Memory::Copied);
        assert_eq!(Memory::under(b"10"), Memory::Copied);
    }
}
