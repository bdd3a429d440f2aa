//! Bytes from one connection to the other, through a pipe of the kernel's: they are not copied, nor seen. While nothing
//! moves, neither pipe nor buffer is held.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a pipe holds, where the kernel gives that much.
const SIZE: usize = 256 * 1024;

/// How many pipes are kept for the next one who needs one.
const KEPT: usize = 16;

/// Bytes that have gone one way.
#[derive(Debug, Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// How many.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Pipes that nobody needs now, all of them empty.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<Vec<Pipe>>);

impl Pipes {
    fn take(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Whoever has many pipes gets small ones, which are slower and do.
        let _ = fcntl_setpipe_size(&write, SIZE);
        Ok(Pipe { read, write })
    }

    fn give_back(&self, pipe: Pipe) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(pipe);
        }
    }
}

/// Carries from one connection to the other, to the end, which is told to the second. `meter` counts what has been taken
/// from the first.
pub(crate) async fn carry(from: &TcpStream, to: &TcpStream, pipes: &Pipes, meter: &Meter) -> io::Result<()> {
    loop {
        from.readable().await?;
        // One that is given up half way is not given back.
        let pipe = pipes.take()?;
        loop {
            match from.try_io(Interest::READABLE, || push(from, &pipe.write, SIZE)) {
                Ok(0) => {
                    pipes.give_back(pipe);
                    return rustix::net::shutdown(to, Shutdown::Write).map_err(io::Error::from);
                }
                Ok(count) => {
                    meter.add(count);
                    pour(&pipe, to, count).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        pipes.give_back(pipe);
    }
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
        let (carried, _client, read) =
            tokio::join!(carry(&inner, &outer, &pipes, &meter), sending, server.read_to_end(&mut received));
        carried.unwrap();
        read.unwrap();
        assert_eq!(meter.get(), bytes.len() as u64);
        assert!(received == bytes);
        assert_eq!(pipes.0.lock().unwrap().len(), 1);
    }
}
