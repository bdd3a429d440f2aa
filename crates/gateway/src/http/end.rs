//! The two ends that are relayed between: how bytes are taken from them and given to them, without owning either.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{RecvFlags, Shutdown};
use tokio::net::TcpStream;
use tokio::task::consume_budget;
use tokio::time::{Instant, sleep_until, timeout};

use policy::network::Refusal;

use crate::carry::Meter;
use crate::conversation::Traffic;

/// Who is at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    Client,
    Server,
}

/// Why an exchange cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Somebody has closed, or broken off.
    Gone(Party),
    /// What somebody sent has no single meaning.
    Malformed(Party),
    /// Somebody did not go on in time.
    Slow(Party),
    /// The request may not go on.
    Refused(Refusal),
    /// The request goes on, and not to this server.
    Elsewhere,
}

/// How long a client may take to hear the last words.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);

/// Says the last words to a client, which has a while to hear them.
pub(crate) async fn say_last(stream: &TcpStream, words: &[u8]) {
    // What is said from here is nobody's traffic.
    let (motion, traffic) = (&Motion::new(), &Traffic::default());
    let client = End { party: Party::Client, stream, motion, traffic };
    let farewell = async {
        if client.write_all(words).await.is_ok() {
            client.take_leave().await;
        }
    };
    let _ = timeout(FAREWELL, farewell).await;
}

/// When something moved last.
#[derive(Debug)]
pub(super) struct Motion {
    start: Instant,
    /// In milliseconds after the start.
    last: AtomicU64,
}

impl Motion {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(super) fn mark(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Resolves when nothing has moved for so long.
    pub(super) async fn ceases(&self, limit: Duration) {
        loop {
            let last = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed));
            // A limit that no clock reaches is none.
            let Some(end) = last.checked_add(limit) else { return std::future::pending().await };
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}

/// What is in a socket and has not been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    Bytes,
    End,
}

/// One end.
#[derive(Clone, Copy, Debug)]
pub(super) struct End<'relay> {
    pub(super) party: Party,
    pub(super) stream: &'relay TcpStream,
    pub(super) motion: &'relay Motion,
    pub(super) traffic: &'relay Traffic,
}

impl End<'_> {
    const fn gone(&self) -> Fault {
        Fault::Gone(self.party)
    }

    /// Waits until there is something to take, which is not certain to be there then.
    pub(super) async fn readable(&self) -> Result<(), Fault> {
        consume_budget().await;
        self.stream.readable().await.map_err(|_| self.gone())?;
        self.meter().clear().await;
        Ok(())
    }

    /// What is counted of all that comes from this end.
    pub(super) const fn meter(&self) -> &Meter {
        match self.party {
            Party::Client => &self.traffic.sent,
            Party::Server => &self.traffic.received,
        }
    }

    /// Takes what is there: how many bytes, where there is anything. None of them means the end.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> Result<Option<usize>, Fault> {
        match self.stream.try_read(buffer) {
            Ok(count) => {
                self.motion.mark();
                if self.party == Party::Server {
                    self.traffic.received.add(count);
                }
                Ok(Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(_) => Err(self.gone()),
        }
    }

    /// Gives it all of this.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            consume_budget().await;
            match self.stream.try_write(bytes) {
                Ok(count) => {
                    self.motion.mark();
                    if self.party == Party::Server {
                        self.traffic.sent.add(count);
                    }
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable().await.map_err(|_| self.gone())?;
                }
                Err(_) => return Err(self.gone()),
            }
        }
        Ok(())
    }

    /// What is there, without taking it. The kernel is asked: the runtime can be late to know.
    pub(super) fn waiting(&self) -> Waiting {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(self.stream, &mut [0; 1], flags) {
            Ok((0, _)) => Waiting::End,
            Ok(_) => Waiting::Bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Waiting::Nothing,
            Err(_) => Waiting::End,
        }
    }

    /// Resolves when this end says something that nobody waits for, or ends.
    pub(super) async fn speaks(&self) -> Fault {
        let mut byte = [0; 1];
        loop {
            if let Err(fault) = self.readable().await {
                return fault;
            }
            match self.try_read(&mut byte) {
                Ok(None) => {}
                Ok(Some(0)) => return self.gone(),
                Ok(Some(_)) => return Fault::Malformed(self.party),
                Err(fault) => return fault,
            }
        }
    }

    /// Ends what is said to this end, and takes what still comes from it: whoever is cut off while speaking does not hear
    /// the last words.
    pub(super) async fn take_leave(&self) {
        let _ = rustix::net::shutdown(self.stream, Shutdown::Write);
        let mut ignored = vec![0; 4096];
        while self.readable().await.is_ok() {
            if matches!(self.try_read(&mut ignored), Ok(Some(0)) | Err(_)) {
                return;
            }
        }
    }
}
