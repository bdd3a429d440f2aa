//! The keeper as the supervisor sees it: a socket that takes a plea at a time, and gives an answer to some.

use std::io;
use std::sync::Arc;

use handover::{Answer, Plea, Reached};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, watch};
use wire::{Connection, Exited};

/// A handle to the keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    line: Arc<Mutex<Line>>,
    answers: Arc<Mutex<mpsc::Receiver<Answer>>>,
    /// What it says unasked.
    unasked: Arc<Mutex<mpsc::Receiver<Answer>>>,
    alive: watch::Receiver<()>,
}

/// What is said to it.
#[derive(Debug)]
struct Line {
    write: OwnedWriteHalf,
    /// An init of which it was not told that it is there.
    unannounced: Option<Connection>,
}

impl Line {
    /// Init's being there is told before anything else that is heard of it: whoever waits for it would take its end for a
    /// start that failed, and tell nobody of the walls.
    async fn say(&mut self, plea: Plea) -> io::Result<()> {
        let is_first = self.unannounced.as_ref().is_some_and(Connection::has_heard);
        if is_first {
            self.unannounced = None;
            self.write.write_all(Plea::Up.bytes().as_slice()).await?;
        }
        if plea == Plea::Up { Ok(()) } else { self.write.write_all(plea.bytes().as_slice()).await }
    }
}

impl Keeper {
    /// `unannounced` is the init that the keeper has to be told of.
    pub(crate) fn new(stream: UnixStream, unannounced: Option<Connection>) -> Self {
        let (read, write) = stream.into_split();
        let (answered, answers) = mpsc::channel(1);
        let (told, unasked) = mpsc::channel(1);
        let (living, alive) = watch::channel(());
        tokio::spawn(listen(read, answered, told, living));
        let (answers, unasked) = (Arc::new(Mutex::new(answers)), Arc::new(Mutex::new(unasked)));
        Self { line: Arc::new(Mutex::new(Line { write, unannounced })), answers, unasked, alive }
    }

    /// Resolves when the keeper has ended, or told us to.
    pub(crate) async fn gone(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// More is on the disk than may be: whether all has been frozen.
    pub(crate) async fn disk_is_full(&self) -> bool {
        match self.unasked.lock().await.recv().await {
            Some(answer) => matches!(answer, Answer::DiskFrozen),
            None => std::future::pending().await,
        }
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
        self.line.lock().await.say(plea).await.is_ok()
    }

    /// Asks, one question at a time; none where nobody answers any more.
    async fn ask(&self, plea: Plea) -> Option<Answer> {
        let mut answers = self.answers.lock().await;
        if !self.plead(plea).await {
            return None;
        }
        answers.recv().await
    }

    /// Which limits were reached since the last such question; none where nobody answers any more.
    pub(crate) async fn reached(&self) -> Option<Reached> {
        reached(self.ask(Plea::Limits).await)
    }

    /// The same, and everything inside ends: nobody is asked for it any more, and it takes its time to go.
    pub(crate) async fn empty(&self) -> Option<Reached> {
        reached(self.ask(Plea::Empty).await)
    }

    /// The next part of the record, or why there is none.
    pub(crate) async fn next_part(&self) -> Option<Answer> {
        self.ask(Plea::Part).await
    }
}

fn reached(answer: Option<Answer>) -> Option<Reached> {
    match answer {
        Some(Answer::Limits(reached)) => Some(reached),
        _ => None,
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
async fn listen(
    read: OwnedReadHalf,
    answered: mpsc::Sender<Answer>,
    told: mpsc::Sender<Answer>,
    living: watch::Sender<()>,
) {
    let socket = read.as_ref();
    loop {
        match socket.async_io(Interest::READABLE, || Answer::receive(socket)).await {
            // One that waits is as good as two, and answers are not held up by it.
            Ok(Some(answer @ (Answer::DiskFrozen | Answer::DiskGoesOn))) => drop(told.try_send(answer)),
            Ok(Some(answer)) => drop(answered.send(answer).await),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(None) | Err(_) => break,
        }
    }
    drop(living);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as Socket;

    use tokio::io::AsyncReadExt as _;
    use wire::{Side, over_socket};

    use super::*;

    /// What was said so far.
    async fn said(outer: &mut UnixStream) -> Vec<u8> {
        let mut bytes = [0; 16];
        let count = outer.read(&mut bytes).await.unwrap();
        bytes[..count].to_vec()
    }

    #[tokio::test]
    async fn init_is_announced_once_and_before_whatever_is_heard_of_it() {
        let (near, far) = Socket::pair().unwrap();
        let (init, _) = over_socket(near, Side::Asking).unwrap();
        let (inside, _incoming) = over_socket(far, Side::Answering).unwrap();
        let (inner, mut outer) = UnixStream::pair().unwrap();
        let keeper = Keeper::new(inner, Some(init.clone()));
        keeper.end().await;
        assert_eq!(said(&mut outer).await, Plea::End.bytes().as_slice(), "nobody is there yet");
        drop(inside.open().unwrap());
        assert!(init.heard().await);
        keeper.lost().await;
        keeper.plead(Plea::Up).await;
        let both = [Plea::Up.bytes().as_slice(), Plea::Lost.bytes().as_slice()].concat();
        let mut heard = Vec::new();
        while heard.len() < both.len() {
            heard.extend(said(&mut outer).await);
        }
        assert_eq!(heard, both);
    }
}
