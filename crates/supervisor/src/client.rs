//! One connection of the owner's: the CLI or the server. What it may ask is [`wire::Ask`].

use std::io;
use std::os::fd::OwnedFd;

use tokio::sync::watch;
use wire::{Ask, Channel, Connection, Failed, Incoming, Request, Side, VERSION};

use crate::exec;
use crate::keeper::Keeper;

/// A client and the state of its first command.
pub(crate) struct Client {
    connection: Connection,
    first_ended: watch::Receiver<bool>,
}

impl Client {
    /// Starts serving a connection.
    pub(crate) fn start(stream: impl Into<OwnedFd>, init: Connection, keeper: Keeper) -> io::Result<Self> {
        let (connection, incoming) = wire::over_socket(stream, Side::Answering)?;
        let (ended, first_ended) = watch::channel(false);
        tokio::spawn(answer(incoming, init, keeper, ended));
        Ok(Self { connection, first_ended })
    }

    /// Resolves when the client is gone or its first command has ended: a sandbox that was started for one
    /// command ends with it, and without waiting for the client to say so.
    pub(crate) async fn done(&self) {
        let mut first_ended = self.first_ended.clone();
        let ended = async {
            if first_ended.wait_for(|ended| *ended).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = ended => {}
            _ = self.connection.closed() => {}
        }
    }

    /// Sends what is queued and waits until the client has hung up.
    pub(crate) async fn last_words(&self) {
        self.connection.shutdown();
        self.connection.closed().await;
    }
}

async fn answer(mut incoming: Incoming, init: Connection, keeper: Keeper, ended: watch::Sender<bool>) {
    let mut first = Some(ended);
    while let Some(channel) = incoming.next().await {
        let (init, keeper, ended) = (init.clone(), keeper.clone(), first.take());
        tokio::spawn(async move {
            request(channel, &init, &keeper).await;
            if let Some(ended) = ended {
                let _ = ended.send(true);
            }
        });
    }
}

/// Answers one request. What a client of ours does not ask is not answered.
async fn request(mut channel: Channel, init: &Connection, keeper: &Keeper) {
    let Ok(Some(request)) = channel.messages.receiver.next_message::<Request>().await else { return };
    match request.ask {
        Some(Ask::Exec(exec)) if request.version == VERSION => {
            // A lane that breaks ends the exec; the client sees its channel closed without an exit.
            let _ = exec::relay(channel, exec, init, keeper).await;
        }
        _ => {
            let failed = Failed { step: wire::Step::Request as i32, errno: 0 };
            let _ = exec::send(&mut channel.messages.sender, wire::Event::Failed(failed)).await;
        }
    }
}
