//! Files in and out: each request is done by an ordinary process inside, init's own file as `init files`, with the
//! rights of the user that is asked for and no others. Only bytes pass through here.

use wire::{
    Ask, Channel, Connection, Event, Exec, ExecEvent, FileOrder, LaneError, LaneReceiver, LaneSender,
    Request, VERSION,
};

use crate::view::send;

/// Does what is asked, and tells the client how the process ended that did it.
pub(crate) async fn serve(client: Channel, order: FileOrder, init: &Connection) -> Result<(), LaneError> {
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
    let feeding = tokio::spawn(pump(client.input.receiver, input));
    let output = tokio::spawn(pump(inside.output.receiver, client.output.sender));
    let replies = tokio::spawn(pump(inside.error.receiver, client.error.sender));
    let mut happening = inside.messages.receiver;
    let following = async {
        while let Some(message) = happening.next_message::<ExecEvent>().await? {
            match message.event {
                Some(event @ Event::Exited(_)) => {
                    // All bytes first: what follows an exit is nothing.
                    let _ = (output.await, replies.await);
                    return send(&mut telling, event).await;
                }
                Some(event @ Event::Failed(_)) => return send(&mut telling, event).await,
                Some(Event::Started(_) | Event::Detached(_)) | None => {}
            }
        }
        Ok(())
    };
    // If the client leaves, the inner channel is dropped with this function, and init ends the process.
    let followed = tokio::select! {
        followed = following => followed,
        () = client.handle.closed() => Ok(()),
    };
    feeding.abort();
    drop((inside.handle, asking));
    followed
}

async fn pump(mut from: LaneReceiver, mut to: LaneSender) -> Result<(), LaneError> {
    while let Some(bytes) = from.next().await? {
        to.send(bytes).await?;
    }
    to.finish();
    Ok(())
}
