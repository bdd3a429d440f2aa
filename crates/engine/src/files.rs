//! Files in and out of a running sandbox, as tar streams. What comes from inside is hostile: an archive is unpacked
//! beneath one directory and touches nothing there but the one name that the owner chose.

mod stream;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive::{Limits, Output, PackError, Remark, Top, UnpackError, Unpacked};
use bytes::Bytes;
use policy::SandboxSpec;
use tokio::time::timeout;
use wire::{
    Ask, Channel, Connection, Event, ExecEvent, FileAnswer, FileAsk, FileDone, FileFailed, FileMoved,
    FileOrder, FileReply, FileRequest, FileStat, PackTree, Request, StatFile, UnpackTree, VERSION,
};

use stream::Stream;

/// What is taken out of a sandbox at once is at most this.
const LARGEST: Limits = Limits { bytes: 1 << 40, entries: 4_000_000, name_length: 4095, depth: 256 };

/// How long is waited for the reason why nobody answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why files did not get through.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Inside: the process that did it says so.
    #[error("inside: '{}'{}", .0.path.escape_ascii(), if .0.detail.is_empty() { String::new() } else { format!(": {}", .0.detail) })]
    Inside(FileFailed, #[source] io::Error),
    /// The owner's tree could not be read.
    #[error("cannot pack")]
    Pack(#[from] PackError),
    /// What came from inside could not be made outside.
    #[error("cannot unpack")]
    Unpack(#[from] UnpackError),
    /// A file of the owner's.
    #[error("cannot use '{}'", path.display())]
    Here {
        /// Which.
        path: std::path::PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Inside, the process that would do it could not be started.
    #[error("nobody could be started inside who does that")]
    NotStarted(#[source] io::Error),
    /// There is no pipe to be had.
    #[error("cannot make a pipe")]
    Pipe(#[source] io::Error),
    /// The sandbox has ended.
    #[error("the sandbox does not answer")]
    Lost,
}

/// A user inside, and a connection to whoever does things with files there.
#[derive(Debug)]
pub struct Files<'sandbox> {
    connection: &'sandbox Connection,
    spec: &'sandbox SandboxSpec,
    moved: Arc<AtomicU64>,
}

impl<'sandbox> Files<'sandbox> {
    /// The files of a sandbox, as its own user sees them.
    #[must_use]
    pub fn new(connection: &'sandbox Connection, spec: &'sandbox SandboxSpec) -> Self {
        Self { connection, spec, moved: Arc::default() }
    }

    /// How many bytes have gone in or out, for whoever shows that.
    #[must_use]
    pub fn moved(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moved)
    }

    /// Asks, and passes an end of a pipe for an archive.
    async fn ask(&self, ask: FileAsk, pipe: Option<OwnedFd>) -> Result<Channel, FileError> {
        let mut channel = self.connection.open().map_err(|_| FileError::Lost)?;
        if let Some(pipe) = pipe {
            channel.handle.pass(pipe).map_err(|_| FileError::Lost)?;
        }
        let order = FileOrder {
            request: Some(FileRequest { ask: Some(ask) }),
            uid: self.spec.user.uid,
            gid: self.spec.user.gid,
            workdir: self.spec.workdir.to_string().into_bytes().into(),
        };
        let request = Request { version: VERSION, ask: Some(Ask::File(order)) };
        channel.messages.sender.send_message(&request).await.map_err(|_| FileError::Lost)?;
        Ok(channel)
    }

    /// What is at a path, links followed; none where nothing is.
    pub async fn stat(&self, path: &[u8]) -> Result<Option<FileStat>, FileError> {
        const ENOENT: i32 = 2;
        let ask = FileAsk::Stat(StatFile { path: Bytes::copy_from_slice(path), follow: true });
        let mut channel = self.ask(ask, None).await?;
        match until_done(&mut channel, |_| {}).await {
            Ok((_, stat)) => Ok(stat),
            Err(FileError::Inside(failed, _)) if failed.errno == ENOENT => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a file or tree of the owner's into a directory inside, under its own name or this one.
    /// `remark` hears of what is left out or was changed meanwhile.
    pub async fn put(
        &self,
        source: &Path,
        directory: &[u8],
        name: &[u8],
        mut remark: impl FnMut(Remark<'_>) + Send + 'static,
    ) -> Result<FileDone, FileError> {
        let unusable = |source_error| FileError::Here { path: source.to_owned(), source: source_error };
        let whole = std::path::absolute(source).map_err(unusable)?;
        let (above, own) = match (whole.parent(), whole.file_name()) {
            (Some(above), Some(own)) => (above.to_owned(), own.as_bytes().to_vec()),
            _ => (whole.clone(), b".".to_vec()),
        };
        let above = File::open(&above).map_err(|error| FileError::Here { path: above, source: error })?;
        let pack = move |output: &mut dyn Write| {
            archive::pack(above, &own, Output::Writer(output), &mut remark).map(drop).map_err(FileError::from)
        };
        self.unpack_inside(directory, name, pack).await
    }

    /// Unpacks a tar stream into a directory inside.
    pub async fn put_archive(
        &self,
        mut source: impl Read + Send + 'static,
        directory: &[u8],
    ) -> Result<FileDone, FileError> {
        let copy = move |output: &mut dyn Write| {
            let copied = io::copy(&mut source, output).map(drop);
            copied.map_err(|source| FileError::Here { path: "stdin".into(), source })
        };
        self.unpack_inside(directory, b"", copy).await
    }

    async fn unpack_inside(
        &self,
        directory: &[u8],
        name: &[u8],
        write: impl FnOnce(&mut dyn Write) -> Result<(), FileError> + Send + 'static,
    ) -> Result<FileDone, FileError> {
        let (path, top) = (Bytes::copy_from_slice(directory), Bytes::copy_from_slice(name));
        let count = Arc::<AtomicU64>::default();
        let counts = [self.moved(), Arc::clone(&count)];
        let (mut stream, theirs, over) = Stream::to_write(counts).map_err(FileError::Pipe)?;
        let ask = FileAsk::Unpack(UnpackTree { path, top, by_output: true });
        let mut channel = self.ask(ask, Some(theirs)).await?;
        let writing = tokio::task::spawn_blocking(move || write(&mut stream));
        let done = until_done(&mut channel, |_| {}).await;
        // Whoever stopped reading has said why; our own side then has nothing more to say.
        drop(over);
        let written = writing.await.map_err(|_| FileError::Lost)?;
        conclude(channel, count.load(Ordering::Relaxed)).await;
        one_of(done.map(|(done, _)| done), written).map(|(done, ())| done)
    }

    /// Takes a file or tree from inside into a directory of the owner's, under this name; nothing else there is
    /// touched. `skipped` hears of what is left out or was changed meanwhile.
    pub async fn take(
        &self,
        path: &[u8],
        directory: &Path,
        name: &[u8],
        skipped: impl FnMut(&wire::FileSkipped),
    ) -> Result<Unpacked, FileError> {
        let here =
            File::open(directory).map_err(|source| FileError::Here { path: directory.to_owned(), source })?;
        let name = name.to_vec();
        let unpack = move |input: Stream| {
            archive::unpack_pipe(input, here, Top::Named(&name), &LARGEST).map_err(FileError::from)
        };
        self.pack_inside(path, unpack, skipped).await
    }

    /// Takes a file or tree from inside as a tar stream.
    pub async fn take_archive(
        &self,
        path: &[u8],
        mut target: impl Write + Send + 'static,
        skipped: impl FnMut(&wire::FileSkipped),
    ) -> Result<u64, FileError> {
        let copy = move |mut input: Stream| {
            let copied = io::copy(&mut input, &mut target).and_then(|count| target.flush().map(|()| count));
            copied.map_err(|source| FileError::Here { path: "stdout".into(), source })
        };
        self.pack_inside(path, copy, skipped).await
    }

    async fn pack_inside<T: Send + 'static>(
        &self,
        path: &[u8],
        read: impl FnOnce(Stream) -> Result<T, FileError> + Send + 'static,
        skipped: impl FnMut(&wire::FileSkipped),
    ) -> Result<T, FileError> {
        let count = Arc::<AtomicU64>::default();
        let counts = [self.moved(), Arc::clone(&count)];
        let (stream, theirs, over) = Stream::to_read(counts).map_err(FileError::Pipe)?;
        let ask = FileAsk::Pack(PackTree { path: Bytes::copy_from_slice(path) });
        let mut channel = self.ask(ask, Some(theirs)).await?;
        let reading = tokio::task::spawn_blocking(move || read(stream));
        let done = until_done(&mut channel, skipped).await;
        // What there is to be read has been written by now.
        drop(over);
        let read = reading.await.map_err(|_| FileError::Lost)?;
        conclude(channel, count.load(Ordering::Relaxed)).await;
        one_of(done, read).map(|(_, read)| read)
    }
}

/// Says how much it was, and waits until that is on record. Whatever else is said inside is thrown away.
async fn conclude(channel: Channel, bytes: u64) {
    let Channel { mut messages, handle, .. } = channel;
    if messages.sender.send_message(&FileMoved { bytes }).await.is_ok() {
        handle.closed().await;
    }
}

/// What both sides did, or the cause of the failure where one is the consequence of the other: of a stream that was cut
/// short, whoever cut it knows why.
fn one_of<I, H>(inside: Result<I, FileError>, here: Result<H, FileError>) -> Result<(I, H), FileError> {
    match (inside, here) {
        (Ok(inside), Ok(here)) => Ok((inside, here)),
        (Err(inside), Err(here)) => Err(if is_consequence(&here) { inside } else { here }),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// Whether this is what one sees of the other side's failure.
fn is_consequence(here: &FileError) -> bool {
    match here {
        FileError::Pack(PackError::Output(error)) | FileError::Here { source: error, .. } => {
            error.kind() == io::ErrorKind::BrokenPipe
        }
        FileError::Unpack(error) => matches!(error, UnpackError::Truncated | UnpackError::Input(_)),
        _ => false,
    }
}

/// Hears what is said until the last word, or why nobody says it.
async fn until_done(
    channel: &mut Channel,
    mut skipped: impl FnMut(&wire::FileSkipped),
) -> Result<(FileDone, Option<FileStat>), FileError> {
    let mut stat = None;
    while let Ok(Some(reply)) = channel.error.receiver.next_message::<FileReply>().await {
        match reply.answer {
            Some(FileAnswer::Done(done)) => return Ok((done, stat)),
            Some(FileAnswer::Failed(failed)) => {
                let source = io::Error::from_raw_os_error(failed.errno);
                return Err(FileError::Inside(failed, source));
            }
            Some(FileAnswer::Stat(found)) => stat = Some(found),
            Some(FileAnswer::Skipped(left_out)) => skipped(&left_out),
            Some(FileAnswer::Entry(_) | FileAnswer::Changed(_)) | None => {}
        }
    }
    // Nobody was there who could have had a last word.
    let event = channel.messages.receiver.next_message::<ExecEvent>();
    match timeout(PATIENCE, event).await.ok().and_then(Result::ok).flatten().and_then(|event| event.event) {
        Some(Event::Failed(failed)) => Err(FileError::NotStarted(io::Error::from_raw_os_error(failed.errno))),
        _ => Err(FileError::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_cut_a_stream_short_knows_why() {
        let inside = || FileError::Inside(FileFailed::default(), io::ErrorKind::BrokenPipe.into());
        let full = || UnpackError::System {
            action: archive::Action::Write,
            name: b"file".to_vec(),
            errno: rustix::io::Errno::NOSPC,
        };
        let of = |here: FileError| one_of::<(), ()>(Err(inside()), Err(here)).unwrap_err();
        assert!(matches!(of(full().into()), FileError::Unpack(UnpackError::System { .. })));
        assert!(matches!(of(UnpackError::Truncated.into()), FileError::Inside(..)));
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(of(PackError::Output(broken()).into()), FileError::Inside(..)));
        let gone = |source| FileError::Here { path: "stdin".into(), source };
        assert!(matches!(of(gone(broken())), FileError::Inside(..)));
        assert!(matches!(of(gone(io::ErrorKind::NotFound.into())), FileError::Here { .. }));
    }
}
