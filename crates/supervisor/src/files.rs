//! Files in and out: each request is done by an ordinary process inside, init's own file as `init files`, with the
//! rights of the user that is asked for and no others. Only bytes pass through here, and those of an archive not even
//! that: the client passes a pipe, which becomes the process's own. Where a kernel of the sandbox's stands in between, by
//! which no descriptor passes, they go through here as well.

mod relay;

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use audit::{Direction, Event, FileOperation, Text};
use rustix::fs::FileType;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::{
    Ask, Channel, Exec, ExecEvent, FileAsk, FileMoved, FileOrder, LaneError, LaneReceiver, LaneSender,
    Request, VERSION,
};

use crate::client::{EINVAL, EMFILE, House, refuse};
use crate::view::send;
use relay::Relayed;

/// How long the client and the process inside are waited for when the other one is done.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Does what is asked, puts it on record, and tells the client how the process ended that did it.
pub(crate) async fn serve(mut client: Channel, order: FileOrder, house: &House) -> Result<(), LaneError> {
    let what = order.request.as_ref().and_then(|request| describe(request.ask.as_ref()?));
    let Ok(passed) = client.handle.take_passed() else { return refuse(&mut client, EMFILE).await };
    if passed.as_ref().is_some_and(|descriptor| !is_pipe(descriptor)) {
        return refuse(&mut client, EINVAL).await;
    }
    let Channel { mut messages, input, output, error, handle } = client;
    let (is_passed, counts) = (passed.is_some(), Counts::default());
    let lanes = Lanes { input: input.receiver, output: output.sender, error: error.sender };
    let mut passing = pin!(pass(&mut messages.sender, lanes, order, passed, house, &counts));
    let mut told = None;
    // If the client leaves, the inner channel is dropped with what is done for it, and init ends the process.
    let served = tokio::select! {
        served = &mut passing => served,
        bytes = moved(&mut messages.receiver), if is_passed => {
            // All has gone through. Whoever inside does not end now holds up nobody.
            told = bytes;
            timeout(LAST_WORDS, passing).await.unwrap_or(Ok(None))
        }
        () = handle.closed() => Ok(None),
    };
    // Where it was ended, the sandbox may be about to: then there is no time for what the client has to say.
    if is_passed && told.is_none() && matches!(served, Ok(Some(_))) {
        told = timeout(LAST_WORDS, moved(&mut messages.receiver)).await.ok().flatten();
    }
    if let Some((operation, path, direction)) = what {
        let bytes = match direction {
            _ if is_passed => told,
            Direction::In => Some(counts.written.load(Ordering::Relaxed)),
            Direction::Out => Some(counts.read.load(Ordering::Relaxed)),
        };
        let ok = matches!(served, Ok(Some(0)));
        house.record.file(&Event::File { operation, path, direction, bytes, ok });
    }
    // Only now: when the channel is closed, the client may rely on the record.
    drop(handle);
    served.map(drop)
}

/// Nothing else is passed on into a sandbox: a directory would be a way out of it.
fn is_pipe(descriptor: &OwnedFd) -> bool {
    rustix::fs::fstat(descriptor).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_fifo())
}

/// What the client says that went through its pipe; nothing where it has left. Cancel-safe.
async fn moved(client: &mut LaneReceiver) -> Option<u64> {
    client.next_message::<FileMoved>().await.ok().flatten().map(|moved| moved.bytes)
}

/// What is on record of a request; none for those by which nothing crosses or changes.
fn describe(ask: &FileAsk) -> Option<(FileOperation, Text, Direction)> {
    Some(match ask {
        FileAsk::Read(ask) => (FileOperation::Read, Text::new(&ask.path), Direction::Out),
        FileAsk::Pack(ask) => (FileOperation::Read, Text::new(&ask.path), Direction::Out),
        FileAsk::Write(ask) => (FileOperation::Write, Text::new(&ask.path), Direction::In),
        FileAsk::Unpack(ask) => (FileOperation::Write, Text::new(&ask.path), Direction::In),
        FileAsk::List(ask) => (FileOperation::List, Text::new(&ask.path), Direction::Out),
        FileAsk::MakeDirectory(ask) => (FileOperation::MakeDirectory, Text::new(&ask.path), Direction::In),
        FileAsk::Move(ask) => (FileOperation::Rename, Text::new(&ask.from), Direction::In),
        FileAsk::Remove(ask) => (FileOperation::Remove, Text::new(&ask.path), Direction::In),
        FileAsk::Stat(_) | FileAsk::Watch(_) => return None,
    })
}

/// The client's ends of what carries bytes.
struct Lanes {
    input: LaneReceiver,
    output: LaneSender,
    error: LaneSender,
}

/// Bytes that went through here.
#[derive(Default)]
struct Counts {
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

/// Lets a process do it and passes its bytes on; gives its exit code, if it has one.
async fn pass(
    telling: &mut LaneSender,
    client: Lanes,
    order: FileOrder,
    passed: Option<OwnedFd>,
    house: &House,
    counts: &Counts,
) -> Result<Option<i32>, LaneError> {
    let inside = house.init.open().map_err(|_| LaneError::Closed)?;
    let mut order = order;
    let relayed = match passed {
        Some(pipe) if !house.way.carries_descriptors() => Relayed::of(&mut order, pipe),
        Some(pipe) => {
            inside.handle.pass(pipe)?;
            Relayed::Nothing
        }
        None => Relayed::Nothing,
    };
    let exec = Exec {
        argv: vec![jail::INIT_PATH.into(), "files".into()],
        workdir: order.workdir,
        uid: order.uid,
        gid: order.gid,
        ..Exec::default()
    };
    // It stays to the end: whoever asks no more has left.
    let mut asking = inside.messages.sender;
    asking.send_message(&Request { version: VERSION, ask: Some(Ask::Exec(exec)) }).await?;
    let mut input = inside.input.sender;
    input.send_message(&order.request.unwrap_or_default()).await?;

    let (written, read) = (Arc::clone(&counts.written), Arc::clone(&counts.read));
    let (feeding, output, replies) = match relayed {
        Relayed::Nothing => (
            tokio::spawn(pump(client.input, input, written)),
            tokio::spawn(pump(inside.output.receiver, client.output, read)),
            tokio::spawn(pump(inside.error.receiver, client.error, Arc::default())),
        ),
        Relayed::In(pipe) => (
            tokio::spawn(relay::feed(pipe, input)),
            tokio::spawn(pump(inside.output.receiver, client.output, read)),
            tokio::spawn(pump(inside.error.receiver, client.error, Arc::default())),
        ),
        Relayed::Out(pipe) => {
            let (passing, passed) = oneshot::channel();
            (
                tokio::spawn(pump(client.input, input, written)),
                tokio::spawn(relay::drain(inside.output.receiver, pipe, passing)),
                tokio::spawn(relay::tell(inside.error.receiver, client.error, passed)),
            )
        }
    };
    let _feeding = AbortOnDrop(feeding);
    let mut happening = inside.messages.receiver;
    while let Some(message) = happening.next_message::<ExecEvent>().await? {
        match message.event {
            Some(wire::Event::Exited(exited)) => {
                // All bytes first: what follows an exit is nothing.
                let _ = (output.await, replies.await);
                send(telling, wire::Event::Exited(exited)).await?;
                return Ok((exited.signal == 0).then_some(exited.code));
            }
            Some(event @ wire::Event::Failed(_)) => {
                send(telling, event).await?;
                return Ok(None);
            }
            Some(wire::Event::Started(_) | wire::Event::Detached(_)) | None => {}
        }
    }
    Ok(None)
}

/// A task that ends with whoever started it.
struct AbortOnDrop(JoinHandle<Result<(), LaneError>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) async fn pump(
    mut from: LaneReceiver,
    mut to: LaneSender,
    count: Arc<AtomicU64>,
) -> Result<(), LaneError> {
    while let Some(bytes) = from.next().await? {
        count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        to.send(bytes).await?;
    }
    to.finish();
    Ok(())
}
