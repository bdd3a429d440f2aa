//! Passes one exec on to init: the request in, what is told and typed in, events and output out. Everything
//! that comes from init is hostile: it is decoded, bounded by the lanes' windows, and sent on as our own.

use wire::{
    Ask, Channel, Connection, Event, Exec, ExecEvent, ExecInput, Exited, LaneError, LaneReceiver, LaneSender,
    Request, VERSION,
};

use crate::keeper::Keeper;

const SIGKILL: i32 = 9;

/// Relays until the process has ended or either side is gone.
pub(crate) async fn relay(
    client: Channel,
    exec: Exec,
    init: &Connection,
    keeper: &Keeper,
) -> Result<(), LaneError> {
    let Ok(inside) = init.open() else { return Ok(()) };
    let mut asking = inside.messages.sender;
    asking.send_message(&Request { version: VERSION, ask: Some(Ask::Exec(exec)) }).await?;

    let mut telling = client.messages.sender;
    let (mut told, mut happening) = (client.messages.receiver, inside.messages.receiver);
    let output = tokio::spawn(pump(inside.output.receiver, client.output.sender));
    let error = tokio::spawn(pump(inside.error.receiver, client.error.sender));
    let input = tokio::spawn(pump(client.input.receiver, inside.input.sender));
    let tell = tokio::spawn(async move {
        while let Ok(Some(message)) = told.next_message::<ExecInput>().await {
            if asking.send_message(&message).await.is_err() {
                break;
            }
        }
        // The lane to init stays open: its end would not mean that the client is gone.
        std::future::pending::<()>().await;
    });

    let events = async {
        while let Some(message) = happening.next_message::<ExecEvent>().await? {
            match message.event {
                Some(Event::Exited(exited)) => {
                    // All output first: what follows an exit is nothing.
                    let _ = (output.await, error.await);
                    return send(&mut telling, Event::Exited(with_cause(exited, keeper).await)).await;
                }
                Some(event @ Event::Failed(_)) => return send(&mut telling, event).await,
                Some(event @ Event::Started(_)) => send(&mut telling, event).await?,
                None => {}
            }
        }
        Ok(())
    };
    // If the client leaves, the inner channel is dropped with this function, and init ends the process.
    let relayed = tokio::select! {
        relayed = events => relayed,
        () = client.handle.closed() => Ok(()),
    };
    input.abort();
    tell.abort();
    drop(inside.handle);
    relayed
}

/// Init does not know why the kernel killed a process; the keeper can see it.
async fn with_cause(exited: Exited, keeper: &Keeper) -> Exited {
    let killed = exited.signal == SIGKILL || exited.code == 128 + SIGKILL;
    Exited { out_of_memory: killed && keeper.out_of_memory().await, ..exited }
}

async fn pump(mut from: LaneReceiver, mut to: LaneSender) -> Result<(), LaneError> {
    while let Some(bytes) = from.next().await? {
        to.send(bytes).await?;
    }
    to.finish();
    Ok(())
}

pub(crate) async fn send(telling: &mut LaneSender, event: Event) -> Result<(), LaneError> {
    telling.send_message(&ExecEvent { event: Some(event) }).await
}
