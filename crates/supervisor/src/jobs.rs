//! All processes that were started and are still known. Those that are over are forgotten when there are many, the
//! oldest first: first what they wrote, then that they were.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use failpoint::Point;
use tokio::sync::watch;
use wire::{Connection, Exec, ExecState, LaneError};

use crate::idle::Users;
use crate::job::{Job, Listening, Progress};
use crate::keeper::Keeper;
use crate::pulse::Overdue;
use crate::record::{Record, RecordError};
use crate::shelf::Shelf;

/// How many that are over are known.
const KNOWN: usize = 256;

/// What those that are over may hold together.
const KEPT: usize = 16 << 20;

/// All processes of a sandbox.
#[derive(Debug)]
pub(crate) struct Jobs {
    table: Mutex<Table>,
    /// The process that the sandbox ends with, once it has ended.
    last: watch::Sender<Option<Arc<Job>>>,
    /// How many are not over, or their end is not on record yet.
    going: watch::Sender<usize>,
    record: Arc<Record>,
    users: Users,
    shelf: Arc<Shelf>,
    /// Whether everything inside stands still.
    paused: watch::Sender<bool>,
}

/// Why a process was not asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Lane(#[from] LaneError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the name of the terminal is taken")]
    NameTaken,
}

#[derive(Debug, Default)]
struct Table {
    jobs: BTreeMap<u64, Arc<Job>>,
    next: u64,
    /// Those that are over, as they ended.
    over: VecDeque<Arc<Job>>,
    /// What those hold at most: less, where others needed the room.
    kept: usize,
}

impl Table {
    fn has_terminal(&self, name: &str) -> bool {
        self.jobs.values().any(|job| !job.is_over() && job.terminal() == Some(name))
    }

    /// A job is over, and another one may be forgotten for it.
    fn settle(&mut self, job: &Arc<Job>) {
        self.over.push_back(Arc::clone(job));
        if self.over.len() > KNOWN
            && let Some(oldest) = self.over.pop_front()
        {
            self.jobs.remove(&oldest.number);
        }
        self.kept += job.size();
        if self.kept > KEPT {
            self.forget();
        }
    }

    /// Counts anew, and forgets what the oldest wrote.
    fn forget(&mut self) {
        self.kept = 0;
        let mut held = 0;
        for job in self.over.iter().rev() {
            held += job.size();
            if held > KEPT {
                job.forget_outputs();
            }
            // What somebody still reads stays, and is counted.
            self.kept += job.size();
        }
    }
}

impl Jobs {
    pub(crate) fn new(record: Arc<Record>, users: Users) -> Self {
        let (last, going, paused) = (watch::channel(None).0, watch::channel(0).0, watch::channel(false).0);
        Self { table: Mutex::default(), last, going, record, users, shelf: Arc::default(), paused }
    }

    /// Notes whether everything inside stands still: nobody is late then.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.send_replace(paused);
    }

    /// Nothing that could break is ever half done under this lock, so poison is ignored.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks init for a process, and follows it to its end.
    pub(crate) async fn start(
        self: &Arc<Self>,
        mut exec: Exec,
        init: &Connection,
        keeper: &Keeper,
    ) -> Result<Arc<Job>, StartError> {
        let (job, listening) = self.add(&mut exec, init)?;
        let overdue = Overdue::of(&exec, init, self.paused.subscribe());
        failpoint::pass(Point::SupervisorExecRecorded);
        job.ask(exec).await?;
        failpoint::pass(Point::SupervisorExecAsked);
        let (jobs, followed, keeper) = (Arc::clone(self), Arc::clone(&job), keeper.clone());
        self.going.send_modify(|going| *going += 1);
        let user = job.terminal().is_none().then(|| self.users.add());
        tokio::spawn(async move {
            let _user = user;
            let handle = followed.listen(listening, (&keeper, &jobs.record), overdue).await;
            jobs.settle(&followed);
            jobs.going.send_modify(|going| *going -= 1);
            // Whoever waits hears of it before init hears that its channel is not needed any more.
            tokio::task::yield_now().await;
            drop(handle);
        });
        Ok(job)
    }

    /// Gives a process its number and the name of its terminal, and puts it on record.
    fn add(&self, exec: &mut Exec, init: &Connection) -> Result<(Arc<Job>, Listening), StartError> {
        let mut table = self.table();
        let number = table.next + 1;
        if exec.terminal.is_some() && exec.terminal_name.is_empty() {
            exec.terminal_name = format!("t{number}");
        }
        if exec.terminal.is_some() && table.has_terminal(&exec.terminal_name) {
            return Err(StartError::NameTaken);
        }
        let (job, listening) = Job::new(number, exec, init, &self.shelf)?;
        self.record.exec(number, exec)?;
        table.next = number;
        table.jobs.insert(number, Arc::clone(&job));
        Ok((job, listening))
    }

    fn settle(&self, job: &Arc<Job>) {
        match &*job.progress().borrow() {
            Progress::Exited(exited) => {
                self.record.exited(job.number, *exited);
                failpoint::pass(Point::SupervisorExitRecorded);
            }
            Progress::Failed(failed) => self.record.failed(job.number, failed),
            Progress::Asked | Progress::Runs(_) | Progress::Lost => {}
        }
        if job.last {
            self.last.send_replace(Some(Arc::clone(job)));
        }
        self.table().settle(job);
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<Job>> {
        self.table().jobs.get(&number).cloned()
    }

    /// All of them, the oldest first.
    pub(crate) fn states(&self) -> Vec<ExecState> {
        self.table().jobs.values().map(|job| job.state()).collect()
    }

    /// How much has ever appeared on terminals that are in use.
    pub(crate) fn shown(&self) -> u64 {
        self.table()
            .jobs
            .values()
            .filter(|job| job.terminal().is_some() && !job.is_over())
            .map(|job| job.output.end())
            .sum()
    }

    /// Whether the process that the sandbox ends with has been asked for.
    pub(crate) fn has_last(&self) -> bool {
        self.table().jobs.values().any(|job| job.last)
    }

    /// Waits until all are over and on record.
    pub(crate) async fn settled(&self) {
        let _ = self.going.subscribe().wait_for(|going| *going == 0).await;
    }

    /// Waits for the end of the process that the sandbox ends with.
    pub(crate) async fn last_ended(&self) -> Arc<Job> {
        let mut last = self.last.subscribe();
        loop {
            if let Some(job) = last.borrow_and_update().as_ref() {
                return Arc::clone(job);
            }
            if last.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
