//! One connection of the owner's: the CLI or the server. What it may ask is [`wire::Ask`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use audit::TerminalChange;
use tokio::sync::watch;
use wire::{
    Ask, Channel, Connection, Event, Execs, Failed, Incoming, LaneError, PortStates, Request, Side, Step,
    Stop, Unpublished, VERSION,
};

use crate::files;
use crate::jobs::{Jobs, StartError};
use crate::keeper::Keeper;
use crate::ports::Ports;
use crate::record::Record;
use crate::view::{Beginning, send, view};

/// What all clients share.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) init: Connection,
    pub(crate) keeper: Keeper,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) record: Arc<Record>,
    pub(crate) ports: Ports,
    /// Whether a client has asked for the end.
    stopped: watch::Sender<bool>,
}

impl House {
    pub(crate) fn new(init: Connection, keeper: Keeper, record: Record) -> Arc<Self> {
        let record = Arc::new(record);
        let jobs = Arc::new(Jobs::new(Arc::clone(&record)));
        let ports = Ports::new(init.clone(), Arc::clone(&record));
        Arc::new(Self { init, keeper, jobs, record, ports, stopped: watch::channel(false).0 })
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
                Err(StartError::Record(_)) => return refuse(&mut channel, ENOSPC).await,
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
            end_all(stop, &house.init).await?;
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
        Some(Ask::File(order)) => files::serve(channel, order, &house.init, &house.record).await,
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
        Some(Ask::Dial(_)) | None => refuse(&mut channel, 0).await,
    }
}

/// There is no such process.
const ESRCH: i32 = 3;
/// There is a terminal of that name.
const EEXIST: i32 = 17;
/// There is no room for its record.
const ENOSPC: i32 = 28;

async fn refuse(channel: &mut Channel, errno: i32) -> Result<(), LaneError> {
    let failed = Failed { step: Step::Request as i32, errno };
    send(&mut channel.messages.sender, Event::Failed(failed)).await
}

/// Lets init tell every process to end, and waits until it says that none is left.
async fn end_all(stop: Stop, init: &Connection) -> Result<(), LaneError> {
    let mut inside = init.open().map_err(|_| LaneError::Closed)?;
    let ask = Some(Ask::Stop(stop));
    inside.messages.sender.send_message(&Request { version: VERSION, ask }).await?;
    while inside.messages.receiver.next().await?.is_some() {}
    Ok(())
}
