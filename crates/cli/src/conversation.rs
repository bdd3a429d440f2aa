//! A conversation with a supervisor about one process: asked for or attached to, its bytes passed on both ways.

use std::io;
use std::os::unix::net::UnixStream;

use wire::{Channel, Event, ExecEvent, Exited, Failed, LaneReceiver, Request, Side};

use crate::signals::{Signals, tell};
use crate::stdio::{self, Target};
use crate::terminal::RawMode;

/// How a conversation ended.
pub(crate) enum Ended {
    Exited(Exited),
    Failed(Failed),
    /// Stdout takes no more.
    OutputBroken(io::Error),
    /// The command did not end at this signal, nor at those before it.
    GivenUp(u8),
    Lost,
}

/// Asks for the command and passes bytes, signals and sizes on until it has ended.
pub(crate) async fn converse(
    client: UnixStream,
    request: Request,
    signals: &mut Signals,
    raw: Option<&RawMode>,
) -> Ended {
    let Ok((connection, _)) = wire::over_socket(client, Side::Asking) else { return Ended::Lost };
    let Ok(channel) = connection.open() else { return Ended::Lost };
    let Channel { messages, input, output, error, handle } = channel;
    let (mut asking, hearing) = (messages.sender, messages.receiver);
    if asking.send_message(&request).await.is_err() {
        return Ended::Lost;
    }
    drop((output.sender, error.sender, input.receiver));
    let stdin = tokio::spawn(stdio::pump_stdin(input.sender));
    let heard = async { Ok(hear(hearing).await) };
    // A command whose stdout nobody reads any more is ended, not waited for: it may go on writing for ever.
    let stdout =
        async { stdio::pump_output(output.receiver, Target::Stdout).await.map_err(Ended::OutputBroken) };
    let stderr = async {
        let _ = stdio::pump_output(error.receiver, Target::Stderr).await;
        Ok(())
    };
    let ended = tokio::select! {
        ended = async { tokio::try_join!(heard, stdout, stderr) } => match ended {
            Ok((ended, (), ())) => ended,
            Err(broken) => broken,
        },
        signal = tell(asking, signals, raw) => Ended::GivenUp(signal),
    };
    stdin.abort();
    drop(handle);
    connection.shutdown();
    ended
}

/// Sees what a process wrote, and types nothing.
pub(crate) async fn look(client: UnixStream, request: Request) -> Ended {
    let Ok((connection, _)) = wire::over_socket(client, Side::Asking) else { return Ended::Lost };
    let Ok(mut channel) = connection.open() else { return Ended::Lost };
    if channel.messages.sender.send_message(&request).await.is_err() {
        return Ended::Lost;
    }
    let stdout = async {
        let pumped = stdio::pump_output(channel.output.receiver, Target::Stdout).await;
        pumped.map_err(Ended::OutputBroken)
    };
    let stderr = async {
        let _ = stdio::pump_output(channel.error.receiver, Target::Stderr).await;
        Ok(())
    };
    let heard = async { Ok(hear(channel.messages.receiver).await) };
    let ended = tokio::try_join!(heard, stdout, stderr);
    connection.shutdown();
    match ended {
        Ok((ended, (), ())) => ended,
        Err(broken) => broken,
    }
}

async fn hear(mut hearing: LaneReceiver) -> Ended {
    while let Ok(Some(message)) = hearing.next_message::<ExecEvent>().await {
        match message.event {
            Some(Event::Exited(exited)) => return Ended::Exited(exited),
            Some(Event::Failed(failed)) => return Ended::Failed(failed),
            Some(Event::Started(_)) | None => {}
        }
    }
    Ended::Lost
}
