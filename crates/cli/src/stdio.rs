//! The caller's stdin, stdout and stderr, in threads of their own: they may be anything, a blocked one must
//! not hold up the others, and setting them non-blocking would change them for whoever shares them.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use wire::{LaneReceiver, LaneSender};

use crate::keys::{DetachKeys, Watch};

/// Chunks in flight between a thread and the lane.
const CHUNKS: usize = 4;
const CHUNK: usize = 64 * 1024;

/// Passes stdin on until its end or until the command no longer reads; where there are keys to leave by, until they
/// were typed.
pub(crate) async fn pump_stdin(mut lane: LaneSender, keys: Option<DetachKeys>, left: Arc<Notify>) {
    let mut watch = keys.map(Watch::new);
    if is_empty() {
        lane.finish();
        return;
    }
    let (sender, mut receiver) = mpsc::channel::<Bytes>(CHUNKS);
    // The thread is never joined: it may wait for a key that is never pressed.
    let reading = std::thread::Builder::new().spawn(move || {
        while let Some(bytes) = read_stdin() {
            if sender.blocking_send(bytes).is_err() {
                break;
            }
        }
    });
    // The command then has an empty one.
    if let Err(error) = reading {
        let _ = writeln!(io::stderr(), "stdin is not read, as there can be no thread for it: {error}");
    }
    while let Some(mut bytes) = receiver.recv().await {
        let mut leaves = false;
        if let Some(watch) = &mut watch {
            let (passed, completed) = watch.look_at(&bytes);
            (bytes, leaves) = (passed.into(), completed);
        }
        if !bytes.is_empty() && lane.send(bytes).await.is_err() {
            return;
        }
        if leaves {
            left.notify_one();
        }
    }
    lane.finish();
}

/// Whether stdin is /dev/null, as scripts have it: then there is nothing to wait for.
fn is_empty() -> bool {
    let device = |metadata: rustix::fs::Stat| (metadata.st_mode & 0o170_000, metadata.st_rdev);
    match (rustix::fs::fstat(rustix::stdio::stdin()), rustix::fs::stat("/dev/null")) {
        (Ok(stdin), Ok(null)) => device(stdin) == device(null),
        _ => false,
    }
}

/// The next bytes of stdin; none at its end.
fn read_stdin() -> Option<Bytes> {
    let mut buffer = Vec::with_capacity(CHUNK);
    loop {
        match rustix::io::read(rustix::stdio::stdin(), rustix::buffer::spare_capacity(&mut buffer)) {
            Ok(0) => return None,
            Ok(_) => return Some(buffer.into()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Where a lane's bytes go.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// Writes a lane out. The thread starts with the first byte, as many commands say nothing.
pub(crate) async fn pump_output(mut lane: LaneReceiver, target: Target) -> io::Result<()> {
    let mut writer: Option<(mpsc::Sender<Bytes>, JoinHandle<io::Result<()>>)> = None;
    while let Ok(Some(bytes)) = lane.next().await {
        let (sender, _) = writer.get_or_insert_with(|| start_writer(target));
        if sender.send(bytes).await.is_err() {
            break;
        }
    }
    let Some((sender, thread)) = writer else { return Ok(()) };
    drop(sender);
    let joined = tokio::task::spawn_blocking(move || thread.join()).await;
    joined.unwrap_or_else(|_| Ok(Ok(()))).unwrap_or(Ok(()))
}

fn start_writer(target: Target) -> (mpsc::Sender<Bytes>, JoinHandle<io::Result<()>>) {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(CHUNKS);
    let thread = std::thread::spawn(move || {
        while let Some(bytes) = receiver.blocking_recv() {
            match target {
                // Not through the language's own stdout, which would look for line ends in every chunk.
                Target::Stdout => write_all(rustix::stdio::stdout(), &bytes)?,
                Target::Stderr => io::stderr().write_all(&bytes)?,
            }
        }
        Ok(())
    });
    (sender, thread)
}

fn write_all(descriptor: rustix::fd::BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
