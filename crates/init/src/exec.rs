//! One exec, from the request to the last event, as one straight line. The request comes from outside and may
//! be nonsense; what runs is hostile. Neither can make init hold more than one exec's worth of memory, and no
//! more than `PLACES` run at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use wire::{
    Ask, Channel, ChannelHandle, Event, Exec, ExecEvent, Failed, Lane, LaneSender, Pause, Request, Started,
    Step, VERSION,
};

use crate::dial;
use crate::plan::Plan;
use crate::reaper::{Children, Exit};
use crate::spawner::{Executed, Failure, Spawner};
use crate::streams::{Streams, feed, forward};
use crate::vigil::{Patience, Vigil};

/// How many execs may run at once.
const PLACES: usize = 256;

/// What all execs share.
#[derive(Debug)]
pub(crate) struct House {
    spawner: Spawner,
    children: Arc<Children>,
    places: Semaphore,
}

impl House {
    pub(crate) fn new(spawner: Spawner, children: Arc<Children>) -> Self {
        Self { spawner, children, places: Semaphore::new(PLACES) }
    }
}

/// A process whose program runs.
#[derive(Debug)]
struct Process {
    pid: i32,
    exit: oneshot::Receiver<Exit>,
    streams: Streams,
}

/// Answers one request.
pub(crate) async fn serve(mut channel: Channel, house: Arc<House>) {
    let Ok(Some(request)) = channel.messages.receiver.next_message::<Request>().await else { return };
    match request.ask.filter(|_| request.version == VERSION) {
        Some(Ask::Exec(exec)) => run(exec, channel, house).await,
        Some(Ask::Stop(stop)) => house.children.end_all(Duration::from_millis(stop.grace_ms)).await,
        Some(Ask::Pause(Pause { paused, .. })) => house.children.hold_all(paused),
        Some(Ask::Dial(dial)) => dial::serve(dial, channel).await,
        Some(
            Ask::Attach(_)
            | Ask::List(_)
            | Ask::Send(_)
            | Ask::File(_)
            | Ask::Limit(_)
            | Ask::Processes(_)
            | Ask::Ports(_)
            | Ask::Unpublish(_)
            | Ask::Net(_)
            | Ask::SetPolicy(_),
        )
        | None => {
            let unknown = Failure { step: Step::Request, errno: libc::EINVAL };
            fail(&mut channel.messages.sender, unknown).await;
        }
    }
}

/// Starts a process and follows it to its end.
async fn run(exec: Exec, channel: Channel, house: Arc<House>) {
    let Channel { messages, input, output, error, handle } = channel;
    let Lane { sender: mut events, receiver: mut tells } = messages;
    let Ok(_place) = house.places.try_acquire() else {
        return fail(&mut events, Failure { step: Step::Request, errno: libc::EAGAIN }).await;
    };
    let Process { pid, exit, streams } = match start(&exec, &house, &handle).await {
        Ok(process) => process,
        Err(failure) => return fail(&mut events, failure).await,
    };
    tell(&mut events, Event::Started(Started { pid, ..Default::default() })).await;

    let terminal = streams.error.is_none().then(|| streams.output.clone());
    let (end, ended) = watch::channel(false);
    let (delivering, mut delivered) = mpsc::channel(1);
    let feeding = tokio::spawn(feed(streams.input, input.receiver));
    if let Some(stream) = streams.error {
        tokio::spawn(forward(stream, error.sender, ended.clone(), delivering.clone()));
    } else {
        error.sender.finish();
    }
    tokio::spawn(forward(streams.output, output.sender, ended, delivering));

    let vigil = Vigil { pid, children: &house.children, handle: &handle, terminal };
    let exited = vigil.until_exit(exit, &mut tells, Patience::of(&exec)).await;

    feeding.abort();
    end.send_replace(true);
    // Nothing is ever sent; this ends when all who deliver have dropped their side.
    delivered.recv().await;
    tell(&mut events, Event::Exited(exited)).await;
}

/// Starts the process, and kills it again where its streams are not to be had.
async fn start(exec: &Exec, house: &House, handle: &ChannelHandle) -> Result<Process, Failure> {
    let mut plan = Plan::new(exec).map_err(|errno| Failure { step: Step::Request, errno })?;
    plan.output = handle.take_passed().map_err(|_| Failure { step: Step::Streams, errno: libc::EMFILE })?;
    let Executed { pid, exit, ends } = tokio::select! {
        // One that runs by now is followed, and ended with its client: only one that is not taken is killed for us.
        biased;
        executed = house.spawner.execute(plan) => executed?,
        () = handle.closed() => return Err(Failure { step: Step::Program, errno: libc::ECANCELED }),
    };
    let streams = Streams::try_from(ends).map_err(|error| {
        house.children.end(pid, libc::SIGKILL);
        Failure::new(Step::Streams, &error)
    })?;
    Ok(Process { pid, exit, streams })
}

/// Tells the client. Where it is gone, the vigil over the process finds that out as well.
async fn tell(events: &mut LaneSender, event: Event) {
    let _ = events.send_message(&ExecEvent { event: Some(event) }).await;
}

async fn fail(events: &mut LaneSender, Failure { step, errno }: Failure) {
    tell(events, Event::Failed(Failed { step: step.into(), errno })).await;
}
