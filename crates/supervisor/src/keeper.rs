//! The keeper as the supervisor sees it: a socket that takes one byte at a time.

use std::sync::Arc;

use handover::{Answer, Plea};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, watch};
use wire::Exited;

/// A handle to the keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    write: Arc<Mutex<OwnedWriteHalf>>,
    answers: Arc<Mutex<mpsc::Receiver<Answer>>>,
    alive: watch::Receiver<()>,
}

impl Keeper {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        let (answered, answers) = mpsc::channel(1);
        let (living, alive) = watch::channel(());
        tokio::spawn(listen(read, answered, living));
        Self { write: Arc::new(Mutex::new(write)), answers: Arc::new(Mutex::new(answers)), alive }
    }

    /// Resolves when the keeper has ended, or told us to.
    pub(crate) async fn gone(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// Asks for the end of the sandbox.
    pub(crate) async fn end(&self) {
        self.plead(Plea::End).await;
    }

    /// Asks for the end, as nothing is heard of init any more.
    pub(crate) async fn lost(&self) {
        self.plead(Plea::Lost).await;
    }

    /// Asks for the end, as the process has ended that the sandbox ends with.
    pub(crate) async fn exited(&self, exited: Option<Exited>) {
        match exited {
            Some(exited) => drop(self.plead(Plea::Exited(code(exited))).await),
            None => self.end().await,
        }
    }

    pub(crate) async fn plead(&self, plea: Plea) -> bool {
        self.write.lock().await.write_all(plea.bytes().as_slice()).await.is_ok()
    }

    /// Whether the memory limit has killed anything since the last such question.
    pub(crate) async fn out_of_memory(&self) -> bool {
        let mut answers = self.answers.lock().await;
        self.plead(Plea::OutOfMemory).await && answers.recv().await == Some(Answer::Yes)
    }
}

/// The exit code that a shell would give, in one byte.
fn code(exited: Exited) -> u8 {
    const TIMED_OUT: u8 = 124;
    match exited {
        Exited { timed_out: true, .. } => TIMED_OUT,
        Exited { signal, .. } if signal != 0 => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
        Exited { code, .. } => u8::try_from(code & 0xff).unwrap_or(0),
    }
}

/// Passes answers on until the keeper is gone; dropping `living` tells that it is.
async fn listen(mut read: OwnedReadHalf, answered: mpsc::Sender<Answer>, living: watch::Sender<()>) {
    let mut byte = [0];
    while let Ok(1) = read.read(&mut byte).await {
        if let Some(answer) = Answer::from_byte(byte[0]) {
            let _ = answered.send(answer).await;
        }
    }
    drop(living);
}
