//! The supervisor: one process for each sandbox, without privileges. It holds the control channel to init,
//! takes the owner's connections and passes one on to the other.
//!
//! It stands on the exposed side: it parses what the sandbox sends. Before it reads the first such byte it
//! confines itself for good ([`jail::confine`]). It must never hold a descriptor that leads to the host's
//! files, and asks its keeper for anything that takes authority.

mod client;
mod files;
mod idle;
mod job;
mod jobs;
mod keeper;
mod log;
mod network;
mod ports;
mod processes;
mod pulse;
mod record;
mod shelf;
mod stream;
mod view;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use audit::{StopReason, WriteError, Writer};
use failpoint::Point;
use handover::{Bequest, Inward, Plea, Stay};
use jail::ConfineError;
use policy::Timeout;
use tokio::net::UnixListener;
use wire::Side;

use client::{House, Inside};
use keeper::Keeper;
use ports::PublishError;
use record::{Record, RecordError};

/// How long the last words may take to reach a client that does not read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the first questions take to arrive: they are on their way before there is a supervisor, and no runtime starts init in that time.
const QUESTIONS: Duration = Duration::from_millis(5);

/// After so long without a word about the first process, init is asked whether it is there.
const SLOW_BEGINNING: Duration = Duration::from_secs(1);

/// How long nothing is accepted after the kernel could not give a connection.
const BREATH: Duration = Duration::from_millis(100);

/// What processes have, when the sandbox ends by itself, between being told to end and being killed.
const GRACE: Duration = Duration::from_secs(10);

/// Why the supervisor gave up.
#[derive(Debug, thiserror::Error)]
enum SupervisorError {
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error("cannot use a descriptor that was handed over")]
    Descriptor(#[from] std::io::Error),
    #[error("cannot put the sandbox on record")]
    Record(#[from] WriteError),
    #[error("cannot publish a port")]
    Publish(#[source] std::io::Error),
}

impl From<PublishError> for SupervisorError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Record(RecordError::Write(error)) => Self::Record(error),
            PublishError::Unusable(error) => Self::Publish(error),
            PublishError::Taken(_) | PublishError::Full | PublishError::Record(_) => {
                Self::Publish(std::io::ErrorKind::InvalidInput.into())
            }
        }
    }
}

/// The supervisor's whole life, in the process that its keeper forked for it. Its exit code is zero, or the error
/// number of why it gave up: the keeper takes no more words from here than that.
#[must_use]
pub fn main(bequest: Bequest) -> i32 {
    let _ = rustix::thread::set_name(c"agentbox-supervisor");
    let source = match supervise(bequest) {
        Ok(()) => return 0,
        Err(
            SupervisorError::Confine(ConfineError::Step { source, .. })
            | SupervisorError::Descriptor(source)
            | SupervisorError::Publish(source),
        ) => source.raw_os_error(),
        Err(SupervisorError::Confine(ConfineError::Landlock(_))) => None,
        Err(SupervisorError::Record(error)) => no_record(&error),
    };
    source.unwrap_or(rustix::io::Errno::IO.raw_os_error())
}

/// The error number that a failure to write comes from.
fn no_record(error: &WriteError) -> Option<i32> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<std::io::Error>()?.raw_os_error()
}

fn supervise(bequest: Bequest) -> Result<(), SupervisorError> {
    failpoint::pass(Point::SupervisorForked);
    if bequest.gate.is_some() {
        gateway::raise_descriptors();
    }
    jail::confine(bequest.uid)?;
    failpoint::pass(Point::SupervisorConfined);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(serve(bequest))
}

/// Serves until the keeper or init is gone, the process has ended that the sandbox ends with, or a client asks for
/// the end; where the sandbox does not stay, also until its first client is gone.
async fn serve(bequest: Bequest) -> Result<(), SupervisorError> {
    let (init, from_inside) = wire::over_socket(bequest.channel, Side::Asking)?;
    let unannounced = (bequest.way != Inward::Straight).then(|| init.clone());
    let keeper = Keeper::new(async_stream(bequest.keeper)?, unannounced);
    // Nothing may be asked from inside; kept unread, what is sent there would fill our memory.
    drop(from_inside);
    let listener = async_listener(bequest.listener)?;
    let publishing = async_listener(bequest.publishing)?;

    let record = Record::go_on(Writer::new(bequest.audit, bequest.head)?, bequest.stay);
    let network = bequest.gate.is_some().then_some(bequest.network);
    let house = House::new(Inside { init, way: bequest.way }, keeper.clone(), record, network);
    if let (Some(network), Some(gate)) = (&house.network, bequest.gate) {
        network.open(async_stream(gate)?);
    }
    let renewed = Arc::clone(&house);
    // Beside all else: a question that was dropped halfway would leave its answer to the next one.
    tokio::spawn(async move { renewed.record.renew(&renewed.keeper).await });
    bequest.ports.into_iter().try_for_each(|port| house.ports.add(port))?;
    if bequest.way != Inward::Straight {
        let house = Arc::clone(&house);
        tokio::spawn(async move { herald(&house).await });
    }
    let first = client::serve(bequest.client, &house)?;
    failpoint::pass(Point::SupervisorServing);
    let accept = async {
        loop {
            match listener.accept().await {
                // A client that cannot be served finds its connection closed.
                Ok((stream, _)) => drop(stream.into_std().map(|stream| client::serve(stream, &house))),
                // There is no descriptor left, which takes a while to change.
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    };
    let left = async {
        if bequest.stay != Stay::UntilEnded {
            first.closed().await;
        }
        if bequest.stay == Stay::UntilEnded || (bequest.stay == Stay::WithCommand && house.jobs.has_last()) {
            std::future::pending::<()>().await;
        }
    };
    let expired = after(bequest.life.lifetime, tokio::time::sleep);
    let idle = after(bequest.life.idle_timeout, |limit| house.users.none_for(limit, &house.jobs));
    tokio::select! {
        // Without a keeper there is nothing more to say, whatever else has ended with it.
        biased;
        () = keeper.gone() => {}
        _ = house.init.closed() => {
            house.ports.close().await;
            house.conclude(StopReason::Failed, None).await;
            keeper.lost().await;
        }
        job = house.jobs.last_ended() => {
            house.ports.close().await;
            let exited = job.exited();
            house.conclude(StopReason::Exited, exited.map(|exited| exited.code)).await;
            keeper.exited(exited).await;
            let _ = tokio::time::timeout(LAST_WORDS, job.unseen()).await;
        }
        () = house.stopped() => {
            // Those that were told to end have; how, is on its way.
            let _ = tokio::time::timeout(LAST_WORDS, house.jobs.settled()).await;
            house.ports.close().await;
            house.conclude(StopReason::Asked, None).await;
            keeper.end().await;
        }
        () = left => {
            house.ports.close().await;
            house.conclude(StopReason::Asked, None).await;
            keeper.end().await;
        }
        () = expired => end_by_itself(&house, audit::Limit::Time, StopReason::Time, Plea::Expired).await,
        () = idle => end_by_itself(&house, audit::Limit::Idle, StopReason::Idle, Plea::Idle).await,
        () = house.watch_disk() => {}
        () = accept => {}
        () = ports::take(publishing, &house.ports) => {}
    }
    house.ports.close().await;
    // What has been said to the first client must arrive, whoever ended first.
    first.shutdown();
    let _ = tokio::time::timeout(LAST_WORDS, first.closed()).await;
    keeper.end().await;
    failpoint::pass(Point::SupervisorLeaving);
    Ok(())
}

/// Tells the keeper as soon as init is heard of: where a runtime starts it, nobody else knows. Whoever made the sandbox has
/// mostly asked for a process by then, and what init says of that is word enough. Else it is asked, and also where that
/// process takes its time to begin, as in a directory of a server that is away.
async fn herald(house: &House) {
    tokio::time::sleep(QUESTIONS).await;
    let is_asked = house.init.has_asked();
    let answers = async {
        if is_asked {
            tokio::time::sleep(SLOW_BEGINNING).await;
        }
        pulse::answers(&house.init).await
    };
    let is_there = tokio::select! {
        is_heard = house.init.heard(), if is_asked => is_heard,
        answers = answers => answers,
    };
    if is_there {
        house.keeper.plead(Plea::Up).await;
    }
}

/// What happens after so long; never, where there is no limit.
async fn after<F: Future<Output = ()>>(limit: Option<Timeout>, happening: impl FnOnce(Duration) -> F) {
    match limit {
        Some(limit) => happening(limit.duration()).await,
        None => std::future::pending().await,
    }
}

/// Ends the sandbox although nobody has asked for it, as well as if somebody had.
async fn end_by_itself(house: &House, limit: audit::Limit, reason: StopReason, plea: Plea) {
    house.record.limit(limit);
    house.end_all(GRACE).await;
    let _ = tokio::time::timeout(LAST_WORDS, house.jobs.settled()).await;
    house.ports.close().await;
    house.conclude(reason, None).await;
    house.keeper.plead(plea).await;
}

fn async_stream(stream: impl Into<OwnedFd>) -> Result<tokio::net::UnixStream, SupervisorError> {
    let stream = UnixStream::from(stream.into());
    stream.set_nonblocking(true)?;
    Ok(tokio::net::UnixStream::from_std(stream)?)
}

fn async_listener(listener: OwnedFd) -> Result<UnixListener, SupervisorError> {
    let listener = std::os::unix::net::UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    Ok(UnixListener::from_std(listener)?)
}
