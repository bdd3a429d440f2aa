//! Which processes a kernel of the sandbox's own has: told by an ordinary process inside, init's own file as
//! `init processes`, with the rights of the user that is asked for and no others. Only bytes pass through here, and
//! nothing of it is on record: nothing crosses but what runs, and nothing is changed.

use std::sync::Arc;

use wire::{
    Ask, Channel, Event, Exec, ExecEvent, LaneError, LaneReceiver, LaneSender, Processes, Request, VERSION,
};

use crate::client::House;
use crate::files::pump;
use crate::view::send;

/// Lets a process inside tell, and says how it ended.
pub(crate) async fn serve(client: Channel, order: Processes, house: &House) -> Result<(), LaneError> {
    let Channel { mut messages, output, handle, .. } = client;
    // If the client leaves, the inner channel is dropped with what is done for it, and init ends the process.
    tokio::select! {
        served = pass(&mut messages.sender, output.sender, order, house) => served,
        () = handle.closed() => Ok(()),
    }
}

async fn pass(
    telling: &mut LaneSender,
    output: LaneSender,
    order: Processes,
    house: &House,
) -> Result<(), LaneError> {
    let mut inside = house.init.open().map_err(|_| LaneError::Closed)?;
    let exec = Exec {
        argv: vec![jail::INIT_PATH.into(), "processes".into()],
        workdir: "/".into(),
        uid: order.uid,
        gid: order.gid,
        ..Exec::default()
    };
    inside.messages.sender.send_message(&Request { version: VERSION, ask: Some(Ask::Exec(exec)) }).await?;
    inside.input.sender.finish();
    let mut happening = inside.messages.receiver;
    let told = pump(inside.output.receiver, output, Arc::default());
    // All bytes first: what follows an exit is nothing.
    let (told, ended) = tokio::join!(told, end(&mut happening));
    match ended? {
        // Nobody was there who could have told anything.
        Some(event @ Event::Failed(_)) => send(telling, event).await,
        Some(event) => {
            told?;
            send(telling, event).await
        }
        None => Ok(()),
    }
}

/// How a process ended, or that it never began; none where init does not say.
async fn end(happening: &mut LaneReceiver) -> Result<Option<Event>, LaneError> {
    while let Some(message) = happening.next_message::<ExecEvent>().await? {
        if let Some(event @ (Event::Exited(_) | Event::Failed(_))) = message.event {
            return Ok(Some(event));
        }
    }
    Ok(None)
}
