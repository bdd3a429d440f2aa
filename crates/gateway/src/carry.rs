//! Bytes from one connection to the other, through a pipe of the kernel's: they are not copied, nor seen. While nothing
//! moves, neither pipe nor buffer is held.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::pace::Pace;

/// What a pipe holds, where the kernel gives that much.
const SIZE: usize = 256 * 1024;

/// How many there are at once: each is two descriptors more. Whoever gets none goes on without.
pub(crate) const MOST_PIPES: usize = 128;

/// What is a little.
const LITTLE: usize = 8192;

/// How many pipes are kept for the next one who needs one.
const KEPT: usize = 16;

/// Bytes that have gone one way, and how fast they may.
#[derive(Debug, Default)]
pub struct Meter {
    count: AtomicU64,
    pace: Option<Arc<Pace>>,
}

impl Meter {
    /// One whose bytes go at a pace, with all others of that pace.
    pub(crate) fn at(pace: &Arc<Pace>) -> Self {
        Self { count: AtomicU64::new(0), pace: Some(Arc::clone(pace)) }
    }

    /// How many.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: usize) {
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        if let Some(pace) = &self.pace {
            pace.spend(count);
        }
    }

    /// Whether not all may go at once.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.is_set())
    }

    /// Waits until more may go.
    pub(crate) async fn clear(&self) {
        if let Some(pace) = self.pace.as_ref().filter(|pace| pace.is_set()) {
            // Few ever wait, and none of the others is to hold the room for it.
            Box::pin(pace.clear()).await;
        }
    }

    /// How much may go at a time, and no more than this.
    pub(crate) fn piece(&self, most: usize) -> usize {
        self.pace.as_ref().map_or(most, |pace| pace.piece(most))
    }
}

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Pipes that nobody needs now, all of them empty, and a place for each that is needed.
#[derive(Debug)]
pub(crate) struct Pipes {
    kept: Mutex<Vec<Pipe>>,
    places: Semaphore,
}

/// A pipe and its place; one that is dropped with bytes in it is not used again.
struct Taken<'pipes> {
    pipe: Pipe,
    _place: SemaphorePermit<'pipes>,
}

impl Default for Pipes {
    fn default() -> Self {
        Self { kept: Mutex::default(), places: Semaphore::new(MOST_PIPES) }
    }
}

impl Pipes {
    /// A pipe, where there is one to be had.
    fn take(&self) -> Option<Taken<'_>> {
        let place = self.places.try_acquire().ok()?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pipe = kept.or_else(|| {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
            // Whoever has many pipes gets small ones, which are slower and do.
            let _ = fcntl_setpipe_size(&write, SIZE);
            Some(Pipe { read, write })
        })?;
        Some(Taken { pipe, _place: place })
    }

    /// Only one that is empty.
    fn give_back(&self, taken: Taken<'_>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(taken.pipe);
        }
    }
}

/// Carries from one connection to the other, to the end. `meter` counts what has been taken from the first.
///
/// What is little is read and written, in fewer calls than a pipe takes; what is more goes through one.
pub(crate) async fn carry(from: &TcpStream, to: &TcpStream, pipes: &Pipes, meter: &Meter) -> io::Result<()> {
    let mut is_much = false;
    loop {
        from.readable().await?;
        meter.clear().await;
        if !is_much {
            match little(from, to, meter)? {
                Little::Done => continue,
                Little::End => return Ok(()),
                Little::Left(rest) => {
                    pass_on(to, &rest).await?;
                    continue;
                }
                Little::More => {}
            }
        }
        let before = meter.get();
        let Some(taken) = pipes.take() else {
            is_much = false;
            continue;
        };
        loop {
            match from.try_io(Interest::READABLE, || push(from, &taken.pipe.write, meter.piece(SIZE))) {
                Ok(0) => {
                    pipes.give_back(taken);
                    return Ok(());
                }
                Ok(count) => {
                    meter.add(count);
                    pour(&taken.pipe, to, count).await?;
                    // Whoever waits holds no pipe.
                    if meter.is_paced() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        pipes.give_back(taken);
        is_much = meter.get() - before > LITTLE as u64;
    }
}

/// What came of a small step.
enum Little {
    /// All that there was has gone on.
    Done,
    /// This is left of it, as there was no room.
    Left(Vec<u8>),
    /// There is more than a little.
    More,
    /// Nothing more will come.
    End,
}

/// Reads once and writes once, without waiting; the buffer is held no longer.
fn little(from: &TcpStream, to: &TcpStream, meter: &Meter) -> io::Result<Little> {
    let mut buffer = [0; LITTLE];
    let room = meter.piece(LITTLE);
    let mut taken = None;
    let emptied = from.try_io(Interest::READABLE, || {
        let count = rustix::io::read(from, &mut buffer[..room])?;
        taken = Some(count);
        // Where less came than there is room for, nothing is left, and the kernel tells anew of what comes.
        if 0 < count && count < room { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    let bytes = match (taken, emptied) {
        (Some(0), _) => return Ok(Little::End),
        (Some(count), _) => &buffer[..count],
        (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
        (None, _) => return Ok(Little::Done),
    };
    meter.add(bytes.len());
    let written = match to.try_write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        written => written?,
    };
    match &bytes[written..] {
        [] if bytes.len() == LITTLE => Ok(Little::More),
        [] => Ok(Little::Done),
        rest => Ok(Little::Left(rest.to_vec())),
    }
}

/// Writes all of it.
pub(crate) async fn pass_on(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = to.async_io(Interest::WRITABLE, || Ok(rustix::io::write(to, bytes)?)).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// All that is in the pipe goes on.
async fn pour(pipe: &Pipe, to: &TcpStream, mut count: usize) -> io::Result<()> {
    while count > 0 {
        count -= to.async_io(Interest::WRITABLE, || push(&pipe.read, to, count)).await?;
    }
    Ok(())
}

fn push(from: &impl std::os::fd::AsFd, to: &impl std::os::fd::AsFd, count: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(splice(from, None, to, None, count, flags)?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_arrive_and_so_does_the_end() {
        let ((mut client, inner), (outer, mut server)) = (pair().await, pair().await);
        let (pipes, meter) = (Pipes::default(), Meter::default());
        let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
        let sent = bytes.clone();
        let sending = async move {
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            client
        };
        let mut received = Vec::new();
        let carried = async {
            let carried = carry(&inner, &outer, &pipes, &meter).await;
            drop(outer);
            carried
        };
        let (carried, _client, read) = tokio::join!(carried, sending, server.read_to_end(&mut received));
        carried.unwrap();
        read.unwrap();
        assert_eq!(meter.get(), bytes.len() as u64);
        assert!(received == bytes);
        assert_eq!(pipes.kept.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_little_needs_no_pipe_and_waits_for_room() {
        let ((mut client, inner), (outer, mut server)) = (pair().await, pair().await);
        let (pipes, meter) = (Pipes::default(), Meter::default());
        let mut received = [0; 5];
        let talk = async {
            for _ in 0..3 {
                client.write_all(b"hello").await.unwrap();
                server.read_exact(&mut received).await.unwrap();
                assert_eq!(&received, b"hello");
            }
            // Nobody reads: all of it waits somewhere, and none of it is lost.
            let mut sent = 0;
            while let Ok(Ok(count)) =
                tokio::time::timeout(std::time::Duration::from_millis(200), client.write(&[7; 3000])).await
            {
                sent += count;
            }
            client.shutdown().await.unwrap();
            let mut all = vec![0; sent];
            server.read_exact(&mut all).await.unwrap();
            assert!(all.iter().all(|byte| *byte == 7) && sent > 100_000);
            sent
        };
        let (carried, sent) = tokio::join!(carry(&inner, &outer, &pipes, &meter), talk);
        carried.unwrap();
        assert_eq!(meter.get(), 15 + sent as u64);
    }
}
