//! Questions to a running sandbox's supervisor.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use failpoint::Point;
use policy::SandboxId;
use wire::{Ask, Channel, Connection, ExecState, Execs, List, Request, Send, Side, Stop, VERSION};

use crate::error::EngineError;
use crate::start::Engine;

/// How long past the time that processes were given a sandbox may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// A question on its way, and the channel that it is answered on. Dropping it withdraws the question.
#[derive(Debug)]
pub struct Asked {
    /// What the answer comes on.
    pub channel: Channel,
    _connection: Connection,
}

impl Asked {
    /// Asks something over a new connection. Must be called on the runtime.
    pub async fn over(client: UnixStream, ask: Ask) -> io::Result<Self> {
        let (connection, _) = wire::over_socket(client, Side::Asking)?;
        let mut channel = connection.open().map_err(io::Error::other)?;
        let request = Request { version: VERSION, ask: Some(ask) };
        channel.messages.sender.send_message(&request).await.map_err(io::Error::other)?;
        Ok(Self { channel, _connection: connection })
    }
}

impl Engine {
    /// A connection to a running sandbox's supervisor.
    pub fn connect(&self, id: &SandboxId) -> Result<UnixStream, EngineError> {
        if !self.is_running(id) {
            return Err(EngineError::NotRunning(id.to_string()));
        }
        let path = self.runtime(id).join("control.sock");
        self.patiently(id, || UnixStream::connect(&path)).map_err(silent(id))
    }

    /// Connects to a running sandbox, whose walls may still go up where it has just been made.
    pub(crate) fn patiently(
        &self,
        id: &SandboxId,
        connect: impl Fn() -> io::Result<UnixStream>,
    ) -> io::Result<UnixStream> {
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            match connect() {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && Instant::now() < patience
                        && self.is_running(id) =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                connected => {
                    failpoint::pass(Point::EngineConnected);
                    return connected;
                }
            }
        }
    }

    /// Asks a running sandbox something.
    pub async fn ask(&self, id: &SandboxId, ask: Ask) -> Result<Asked, EngineError> {
        Asked::over(self.connect(id)?, ask).await.map_err(silent(id))
    }

    /// The processes that a sandbox knows, the oldest first.
    pub async fn execs(&self, id: &SandboxId) -> Result<Vec<ExecState>, EngineError> {
        let mut asked = self.ask(id, Ask::List(List {})).await?;
        let execs = asked.channel.messages.receiver.next_message::<Execs>().await;
        Ok(execs.map_err(io::Error::other).map_err(silent(id))?.unwrap_or_default().execs)
    }

    /// Types something to a process.
    pub async fn send(&self, id: &SandboxId, exec: u64, bytes: Bytes) -> Result<(), EngineError> {
        let mut asked = self.ask(id, Ask::Send(Send { exec, bytes })).await?;
        while let Ok(Some(_)) = asked.channel.messages.receiver.next().await {}
        Ok(())
    }

    /// Tells everything in a sandbox to end and gives it so long; then the sandbox ends, which is waited for elsewhere.
    pub async fn stop(&self, id: &SandboxId, grace: Duration) -> Result<(), EngineError> {
        // What stands still cannot end.
        if self.is_paused(id) {
            // Where it cannot go on, it can still be ended.
            let _ = self.resume(id).await;
        }
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let mut asked = self.ask(id, Ask::Stop(Stop { grace_ms })).await?;
        let answer = async { while let Ok(Some(_)) = asked.channel.messages.receiver.next().await {} };
        let answered = tokio::time::timeout(grace + ENDING, answer).await;
        answered.map_err(|_| silent(id)(io::ErrorKind::TimedOut.into()))
    }
}

pub(crate) fn silent(id: &SandboxId) -> impl Fn(io::Error) -> EngineError {
    move |source| EngineError::Silent { id: id.to_string(), source }
}
