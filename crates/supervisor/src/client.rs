//! One connection of the owner's: the CLI or the server. What it may ask is [`wire::Ask`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use audit::{StopReason, TerminalChange};
use handover::Inward;
use policy::network::NetworkPolicy;
use tokio::sync::watch;
use wire::{
    Ask, Channel, Connection, Event, Execs, Failed, Flows, Incoming, LaneError, Pause, PortStates, Request,
    Side, Step, Stop, Unpublished, VERSION,
};

use crate::files;
use crate::idle::{User, Users};
use crate::jobs::{Jobs, StartError};
use crate::keeper::Keeper;
use crate::network::Network;
use crate::ports::Ports;
use crate::processes;
use crate::record::{Record, RecordError};
use crate::view::{Beginning, send, view};

/// What leads inside.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) init: Connection,
    pub(crate) way: Inward,
}

/// What all clients share.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) init: Connection,
    pub(crate) way: Inward,
    pub(crate) keeper: Keeper,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) record: Arc<Record>,
    pub(crate) ports: Arc<Ports>,
    /// The way out, where there is one.
    pub(crate) network: Option<Network>,
    /// Who uses the sandbox.
    pub(crate) users: Users,
    /// What stands still is not idle.
    paused: Mutex<Option<User>>,
    /// Whether a client has asked for the end.
    stopped: watch::Sender<bool>,
}

impl House {
    pub(crate) fn new(
        Inside { init, way }: Inside,
        keeper: Keeper,
        record: Record,
        policy: Option<NetworkPolicy>,
    ) -> Arc<Self> {
        let record = Arc::new(record);
        let users = Users::default();
        let jobs = Arc::new(Jobs::new(Arc::clone(&record), users.clone()));
        let ports = Arc::new(Ports::new(init.clone(), Arc::clone(&record), users.clone()));
        let network = policy.map(|policy| Network::new(policy, Arc::clone(&record)));
        let (paused, stopped) = (Mutex::default(), watch::channel(false).0);
        Arc::new(Self { init, way, keeper, jobs, record, ports, network, users, paused, stopped })
    }

    fn set_paused(&self, paused: bool) {
        // A value is put in place of another under this lock, and nothing else, so poison is ignored.
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = paused.then(|| self.users.add());
        self.jobs.set_paused(paused);
    }

    /// Lets everything stand still when more is on the disk than may be, until the owner lets it go on.
    pub(crate) async fn watch_disk(&self) {
        loop {
            let by_signal = !self.keeper.disk_is_full().await;
            self.record.limit(audit::Limit::Disk);
            // It stands still, whether there is room for that on record or not.
            let _ = self.record.paused(true);
            self.set_paused(true);
            let _ = hold(Pause { paused: true, by_signal }, &self.init).await;
        }
    }

    /// Tells every process inside to end, gives them their time, and no more than that. What stands still would not
    /// hear it.
    pub(crate) async fn end_all(&self, grace: Duration) {
        const ANSWERING: Duration = Duration::from_secs(2);
        if self.paused.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return;
        }
        let stop = Stop { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) };
        let _ = tokio::time::timeout(grace + ANSWERING, ask_init(Ask::Stop(stop), &self.init)).await;
    }

    /// Puts the end on record, and before it what nobody has asked about.
    pub(crate) async fn conclude(&self, reason: StopReason, code: Option<i32>) {
        if let Some(network) = &self.network {
            network.close().await;
        }
        let reached = match reason {
            StopReason::Exited => self.keeper.empty().await,
            _ => self.keeper.reached().await,
        };
        // A keeper that saw it first writes the end itself, and why.
        if reached.is_some() || reason != StopReason::Failed {
            self.record.reached(reached.unwrap_or_default());
            self.record.stopped(reason, code);
        }
    }

    /// Resolves when a client has asked for the end and everything inside had its time.
    pub(crate) async fn stopped(&self) {
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// Starts serving a connection.
pub(crate) fn serve(stream: impl Into<OwnedFd>, house: &Arc<House>) -> io::Result<Connection> {
    let (connection, incoming) = wire::over_socket(stream, Side::Answering)?;
    tokio::spawn(answer(incoming, Arc::clone(house)));
    Ok(connection)
}

async fn answer(mut incoming: Incoming, house: Arc<House>) {
    let _user = house.users.add();
    while let Some(channel) = incoming.next().await {
        let house = Arc::clone(&house);
        tokio::spawn(async move {
            // A lane that breaks ends the answer; the client sees its channel closed without an end.
            let _ = request(channel, &house).await;
        });
    }
}

/// Answers one request. What a client of ours does not ask is not answered.
async fn request(mut channel: Channel, house: &Arc<House>) -> Result<(), LaneError> {
    let Some(request) = channel.messages.receiver.next_message::<Request>().await? else { return Ok(()) };
    match request.ask.filter(|_| request.version == VERSION) {
        Some(Ask::Exec(exec)) => {
            let job = match house.jobs.start(exec, &house.init, &house.keeper).await {
                Ok(job) => job,
                Err(StartError::Lane(error)) => return Err(error),
                Err(StartError::NameTaken) => return refuse(&mut channel, EEXIST).await,
                // Nothing is started of which there is no record.
                Err(StartError::Record(RecordError::Over)) => return Err(LaneError::Closed),
                Err(StartError::Record(RecordError::Full)) => return refuse(&mut channel, EFBIG).await,
                Err(StartError::Record(RecordError::Write(_))) => return refuse(&mut channel, ENOSPC).await,
            };
            let seen = view(channel, &job, Beginning::Start).await;
            if !job.detached && !job.is_over() {
                job.abandon();
            }
            seen
        }
        Some(Ask::Attach(attach)) => match house.jobs.find(attach.exec) {
            Some(job) => {
                let watched = job.terminal().filter(|_| !attach.no_follow);
                if let Some(name) = watched {
                    house.record.terminal(name, TerminalChange::Attached);
                }
                let seen = view(channel, &job, Beginning::Later(attach)).await;
                if let Some(name) = watched {
                    house.record.terminal(name, TerminalChange::Detached);
                }
                seen
            }
            None => refuse(&mut channel, ESRCH).await,
        },
        Some(Ask::List(_)) => {
            channel.messages.sender.send_message(&Execs { execs: house.jobs.states() }).await
        }
        Some(Ask::Stop(stop)) => {
            house.end_all(Duration::from_millis(stop.grace_ms)).await;
            house.stopped.send_replace(true);
            Ok(())
        }
        Some(Ask::Send(send)) => match house.jobs.find(send.exec) {
            Some(job) => {
                if let Some(name) = job.terminal() {
                    house.record.terminal(name, TerminalChange::Sent);
                }
                job.write(send.bytes).await;
                Ok(())
            }
            None => refuse(&mut channel, ESRCH).await,
        },
        Some(Ask::Pause(pause)) => {
            // What goes on does so, whether there is room for that on record or not.
            if house.record.paused(pause.paused).is_err() && pause.paused {
                return refuse(&mut channel, ENOSPC).await;
            }
            house.set_paused(pause.paused);
            hold(pause, &house.init).await
        }
        Some(Ask::Limit(limits)) => match house.record.updated(limits) {
            Ok(()) => Ok(()),
            Err(_) => refuse(&mut channel, ENOSPC).await,
        },
        Some(Ask::File(order)) => files::serve(channel, order, house).await,
        Some(Ask::Processes(order)) => processes::serve(channel, order, house).await,
        Some(Ask::Ports(_)) => {
            channel.messages.sender.send_message(&PortStates { ports: house.ports.states() }).await
        }
        Some(Ask::Unpublish(unpublish)) => {
            let found = match unpublish.host.parse() {
                Ok(address) => house.ports.remove(address).await,
                Err(_) => false,
            };
            channel.messages.sender.send_message(&Unpublished { found }).await
        }
        Some(Ask::Net(net)) => match &house.network {
            Some(network) => network.tell(&mut channel, net).await,
            None => {
                let nothing = Flows { no_network: true, ..Flows::default() };
                channel.messages.sender.send_message(&nothing).await
            }
        },
        Some(Ask::SetPolicy(policy)) => match &house.network {
            Some(network) => match network.set_policy(&policy.json) {
                Ok(()) => Ok(()),
                Err(errno) => refuse(&mut channel, errno).await,
            },
            None => refuse(&mut channel, ENETDOWN).await,
        },
        Some(Ask::Dial(_)) | None => refuse(&mut channel, 0).await,
    }
}

/// There is no such process.
const ESRCH: i32 = 3;
/// There is a terminal of that name.
const EEXIST: i32 = 17;
/// What was passed is of no use.
pub(crate) const EINVAL: i32 = 22;
/// There is no number left for what was passed.
pub(crate) const EMFILE: i32 = 24;
/// The record has had all the room that it may have.
const EFBIG: i32 = 27;
/// There is no room for its record.
pub(crate) const ENOSPC: i32 = 28;
/// The sandbox has no network.
const ENETDOWN: i32 = 100;

pub(crate) async fn refuse(channel: &mut Channel, errno: i32) -> Result<(), LaneError> {
    let failed = Failed { step: Step::Request as i32, errno };
    send(&mut channel.messages.sender, Event::Failed(failed)).await
}

/// Lets init tell every process to stand still or to go on, where no cgroup does that.
async fn hold(pause: Pause, init: &Connection) -> Result<(), LaneError> {
    if pause.by_signal { ask_init(Ask::Pause(pause), init).await } else { Ok(()) }
}

/// Asks init something that it answers by being done with it: a stop, when no process is left.
async fn ask_init(ask: Ask, init: &Connection) -> Result<(), LaneError> {
    let mut inside = init.open().map_err(|_| LaneError::Closed)?;
    inside.messages.sender.send_message(&Request { version: VERSION, ask: Some(ask) }).await?;
    while inside.messages.receiver.next().await?.is_some() {}
    Ok(())
}
