//! The keeper as the supervisor sees it: a socket that takes one byte at a time.

use std::sync::Arc;

use handover::{Answer, Plea};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, watch};

/// A handle to the keeper.
#[derive(Clone)]
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
        let _ = self.write.lock().await.write_all(&[Plea::End as u8]).await;
    }

    /// Whether the memory limit has killed anything since the last such question.
    pub(crate) async fn out_of_memory(&self) -> bool {
        let mut answers = self.answers.lock().await;
        if self.write.lock().await.write_all(&[Plea::OutOfMemory as u8]).await.is_err() {
            return false;
        }
        answers.recv().await == Some(Answer::Yes)
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
