//! Files in and out: each request is done by an ordinary process inside, init's own file as `init files`, with the
//! rights of the user that is asked for and no others. Only bytes pass through here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use audit::{Direction, Event, FileOperation, Text};
use wire::{
    Ask, Channel, Connection, Exec, ExecEvent, FileAsk, FileOrder, LaneError, LaneReceiver, LaneSender,
    Request, VERSION,
};

use crate::record::Record;
use crate::view::send;

/// Does what is asked, puts it on record, and tells the client how the process ended that did it.
pub(crate) async fn serve(
    client: Channel,
    order: FileOrder,
    init: &Connection,
    record: &Record,
) -> Result<(), LaneError> {
    let what = order.request.as_ref().and_then(|request| describe(request.ask.as_ref()?));
    let (read, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let served = pass(client, order, init, (Arc::clone(&read), Arc::clone(&written))).await;
    if let Some((operation, path, direction)) = what {
        let bytes = match direction {
            Direction::In => written.load(Ordering::Relaxed),
            Direction::Out => read.load(Ordering::Relaxed),
        };
        let ok = matches!(served, Ok(Some(0)));
        record.file(&Event::File { operation, path, direction, bytes, ok });
    }
    served.map(drop)
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

/// Passes the bytes both ways and counts them; the exit code of the process that did it.
async fn pass(
    client: Channel,
    order: FileOrder,
    init: &Connection,
    (read, written): (Arc<AtomicU64>, Arc<AtomicU64>),
) -> Result<Option<i32>, LaneError> {
    let inside = init.open().map_err(|_| LaneError::Closed)?;
    let exec = Exec {
        argv: vec![jail::INIT_PATH.into(), "files".into()],
        workdir: order.workdir,
        uid: order.uid,
        gid: order.gid,
        ..Exec::default()
    };
    let mut asking = inside.messages.sender;
    asking.send_message(&Request { version: VERSION, ask: Some(Ask::Exec(exec)) }).await?;
    let mut input = inside.input.sender;
    input.send_message(&order.request.unwrap_or_default()).await?;

    let mut telling = client.messages.sender;
    let feeding = tokio::spawn(pump(client.input.receiver, input, written));
    let output = tokio::spawn(pump(inside.output.receiver, client.output.sender, read));
    let replies = tokio::spawn(pump(inside.error.receiver, client.error.sender, Arc::default()));
    let mut happening = inside.messages.receiver;
    let following = async {
        while let Some(message) = happening.next_message::<ExecEvent>().await? {
            match message.event {
                Some(wire::Event::Exited(exited)) => {
                    // All bytes first: what follows an exit is nothing.
                    let _ = (output.await, replies.await);
                    send(&mut telling, wire::Event::Exited(exited)).await?;
                    return Ok(Some(exited.code));
                }
                Some(event @ wire::Event::Failed(_)) => {
                    send(&mut telling, event).await?;
                    return Ok(None);
                }
                Some(wire::Event::Started(_) | wire::Event::Detached(_)) | None => {}
            }
        }
        Ok(None)
    };
    // If the client leaves, the inner channel is dropped with this function, and init ends the process.
    let followed = tokio::select! {
        followed = following => followed,
        () = client.handle.closed() => Ok(None),
    };
    feeding.abort();
    drop((inside.handle, asking));
    followed
}

async fn pump(mut from: LaneReceiver, mut to: LaneSender, count: Arc<AtomicU64>) -> Result<(), LaneError> {
    while let Some(bytes) = from.next().await? {
        count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        to.send(bytes).await?;
    }
    to.finish();
    Ok(())
}
