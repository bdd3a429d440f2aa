//! One process inside, as its supervisor knows it: asked of init, its outputs kept, its end remembered. Everything
//! that comes from init is hostile: it is decoded, bounded, and told on as our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify, watch};
use wire::{
    Ask, Channel, ChannelHandle, Connection, EXEC_VARIABLE, Event, Exec, ExecEvent, ExecInput, ExecState,
    Exited, Failed, LaneError, LaneSender, Request, Tell, VERSION,
};

use crate::keeper::Keeper;
use crate::pulse::Overdue;
use crate::record::Record;
use crate::shelf::Shelf;
use crate::stream::Stream;

const SIGKILL: i32 = 9;

/// The end of a process whose time is up, and of which nothing is heard any more.
const TIMED_OUT: Exited = Exited { code: 0, signal: SIGKILL, timed_out: true, out_of_memory: false };

/// What has become of a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    /// Init has been asked.
    Asked,
    /// It runs, under this id inside.
    Runs(i32),
    /// It could not be started.
    Failed(Failed),
    /// It has ended, and all that it wrote has arrived.
    Exited(Exited),
    /// Nothing more will be heard of it.
    Lost,
}

impl Progress {
    /// Whether it is over.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Exited(_) | Self::Lost)
    }
}

/// One process inside.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: u64,
    argv: Vec<Bytes>,
    asked: SystemTime,
    /// The name of its terminal, where it has one.
    terminal: Option<String>,
    pub(crate) detached: bool,
    /// Whether the sandbox ends with it.
    pub(crate) last: bool,
    pub(crate) output: Arc<Stream>,
    pub(crate) error: Arc<Stream>,
    progress: watch::Sender<Progress>,
    /// Its process id inside, once it has one.
    pid: AtomicI32,
    /// Its stdin, until somebody has ended that.
    input: Mutex<Option<LaneSender>>,
    /// What it is told.
    telling: Mutex<LaneSender>,
    abandoned: Notify,
    /// How many clients view it.
    viewed: watch::Sender<usize>,
}

/// A client that views a job, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat<'job>(&'job Job);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.viewed.send_modify(|count| *count -= 1);
    }
}

/// The side of a job that listens to init.
pub(crate) struct Listening {
    channel: Inside,
}

struct Inside {
    happening: wire::LaneReceiver,
    output: wire::LaneReceiver,
    error: wire::LaneReceiver,
    handle: ChannelHandle,
}

impl Job {
    /// A process that init is about to be asked for.
    pub(crate) fn new(
        number: u64,
        exec: &Exec,
        init: &Connection,
        shelf: &Arc<Shelf>,
    ) -> Result<(Arc<Self>, Listening), LaneError> {
        let Channel { messages, input, output, error, handle } =
            init.open().map_err(|_| LaneError::Closed)?;
        let job = Self {
            number,
            argv: exec.argv.clone(),
            asked: SystemTime::now(),
            terminal: exec.terminal.map(|_| exec.terminal_name.clone()),
            detached: exec.detached,
            last: exec.last,
            output: Stream::new(shelf, exec.terminal),
            error: Stream::new(shelf, None),
            progress: watch::channel(Progress::Asked).0,
            pid: AtomicI32::new(0),
            input: Mutex::new(Some(input.sender)),
            telling: Mutex::new(messages.sender),
            abandoned: Notify::new(),
            viewed: watch::channel(0).0,
        };
        let channel =
            Inside { happening: messages.receiver, output: output.receiver, error: error.receiver, handle };
        Ok((Arc::new(job), Listening { channel }))
    }

    /// Asks init for it. What is ours to know is not init's. The process is told its number, so that what it leaves
    /// behind can be told from others'.
    pub(crate) async fn ask(&self, mut exec: Exec) -> Result<(), LaneError> {
        exec.environment.push(format!("{EXEC_VARIABLE}={}", self.number).into());
        let ask = Ask::Exec(Exec { detached: false, last: false, terminal_name: String::new(), ..exec });
        self.telling.lock().await.send_message(&Request { version: VERSION, ask: Some(ask) }).await
    }

    /// A place for a client.
    pub(crate) fn seat(&self) -> Seat<'_> {
        self.viewed.send_modify(|count| *count += 1);
        Seat(self)
    }

    /// Waits until no client views it.
    pub(crate) async fn unseen(&self) {
        let _ = self.viewed.subscribe().wait_for(|count| *count == 0).await;
    }

    /// What has become of it, now and later.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.progress.borrow().is_over()
    }

    /// How it ended, if it has by itself or by a signal.
    pub(crate) fn exited(&self) -> Option<Exited> {
        match *self.progress.borrow() {
            Progress::Exited(exited) => Some(exited),
            _ => None,
        }
    }

    /// Passes bytes to its stdin; where nobody reads there any more, they are lost, as in a pipe.
    pub(crate) async fn write(&self, bytes: Bytes) {
        let mut input = self.input.lock().await;
        if let Some(lane) = input.as_mut()
            && lane.send(bytes).await.is_err()
        {
            *input = None;
        }
    }

    /// Ends its stdin. A terminal's has no end: others may type.
    pub(crate) async fn end_input(&self) {
        if self.terminal.is_none() {
            *self.input.lock().await = None;
        }
    }

    /// The name of its terminal, where it has one.
    pub(crate) fn terminal(&self) -> Option<&str> {
        self.terminal.as_deref()
    }

    pub(crate) async fn tell(&self, message: &ExecInput) {
        if let Some(Tell::Resize(size)) = message.tell {
            self.output.resize(size);
        }
        // Where it has ended meanwhile, there is nobody to tell.
        let _ = self.telling.lock().await.send_message(message).await;
    }

    /// Ends the process, as nobody waits for it any more.
    pub(crate) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// What its outputs hold.
    pub(crate) fn size(&self) -> usize {
        self.output.size() + self.error.size()
    }

    /// Forgets what it wrote, but for what somebody still reads.
    pub(crate) fn forget_outputs(&self) {
        self.output.forget(usize::MAX);
        self.error.forget(usize::MAX);
    }

    pub(crate) fn state(&self) -> ExecState {
        let asked = self.asked.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let progress = self.progress.borrow().clone();
        ExecState {
            exec: self.number,
            argv: self.argv.clone(),
            pid: self.pid.load(Ordering::Relaxed),
            asked_ms: u64::try_from(asked.as_millis()).unwrap_or(u64::MAX),
            exited: if let Progress::Exited(exited) = progress { Some(exited) } else { None },
            failed: if let Progress::Failed(failed) = progress { Some(failed) } else { None },
            terminal: self.terminal.clone().unwrap_or_default(),
            detached: self.detached,
        }
    }

    /// Listens to init until the process is over. Where there still is a channel then, it is given back.
    pub(crate) async fn listen(
        &self,
        Listening { channel }: Listening,
        (keeper, record): (&Keeper, &Record),
        overdue: Overdue,
    ) -> Option<ChannelHandle> {
        let Inside { mut happening, output, error, handle } = channel;
        let filling = {
            let (kept_output, kept_error) = (Arc::clone(&self.output), Arc::clone(&self.error));
            tokio::spawn(async move { tokio::join!(kept_output.fill(output), kept_error.fill(error)) })
        };
        let end = async {
            while let Ok(Some(message)) = happening.next_message::<ExecEvent>().await {
                match message.event {
                    Some(Event::Started(started)) => {
                        self.pid.store(started.pid, Ordering::Relaxed);
                        self.progress.send_replace(Progress::Runs(started.pid));
                    }
                    Some(Event::Failed(failed)) => return Progress::Failed(failed),
                    Some(Event::Exited(exited)) => return Progress::Exited(exited),
                    Some(Event::Detached(_)) | None => {}
                }
            }
            Progress::Lost
        };
        let (end, is_told) = tokio::select! {
            end = end => {
                let is_told = end != Progress::Lost;
                (end, is_told)
            }
            () = self.abandoned.notified() => (Progress::Lost, false),
            // Init would have ended it long since, and does not even answer: it is not waited for either.
            () = overdue.comes() => (Progress::Exited(TIMED_OUT), false),
        };
        // Not above: a question that was dropped halfway would leave its answer to the next one.
        let end = match end {
            Progress::Exited(exited) => Progress::Exited(with_cause(exited, keeper, record).await),
            end => end,
        };
        // Init ends the process of which it has not told an end with its channel.
        let handle = Some(handle).filter(|_| is_told);
        // All output first: what follows an end is nothing.
        let _ = filling.await;
        *self.input.lock().await = None;
        self.progress.send_replace(end);
        handle
    }
}

/// Init does not know why the kernel killed a process, nor what it was refused; the keeper can see it. One that ended well
/// is not asked about: what was refused meanwhile shows later, or at the end.
async fn with_cause(exited: Exited, keeper: &Keeper, record: &Record) -> Exited {
    if exited.code == 0 && exited.signal == 0 {
        return exited;
    }
    let killed = exited.signal == SIGKILL || exited.code == 128 + SIGKILL;
    let reached = keeper.reached().await.unwrap_or_default();
    record.reached(reached);
    Exited { out_of_memory: killed && reached.memory, ..exited }
}
