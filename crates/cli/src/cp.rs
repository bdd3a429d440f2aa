//! `agentbox cp`: files and trees into a sandbox and out of it.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use engine::{Engine, FileError, Files, Remark, Why};
use policy::SandboxId;
use wire::{FileKind, FileSkipped, Side, SkippedWhy};

use crate::arguments::Cp;
use crate::conversation::{About, Answered};
use crate::failure::{Failure, escape};
use crate::stay::in_runtime;

/// One side of a copy.
enum Place {
    /// A path in a sandbox.
    Inside(String, Vec<u8>),
    /// A path of the owner's.
    Here(PathBuf),
    /// A tar stream on stdin or stdout.
    Stream,
}

impl Place {
    /// `ID:PATH` is inside; a path of the owner's with a colon is written with a slash before it.
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            _ if text == "-" => Self::Stream,
            Some((id, path)) if !id.is_empty() && !id.contains('/') => {
                Self::Inside(id.to_owned(), path.as_bytes().to_vec())
            }
            _ => Self::Here(text.into()),
        }
    }
}

pub(crate) fn cp(cp: &Cp) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let said = Arc::new(Remarks::default());
    match (Place::parse(&cp.source), Place::parse(&cp.target)) {
        (Place::Here(source), Place::Inside(id, path)) => {
            with(&engine, &id, async |files| put(&files, &source, &path, &said).await)?;
        }
        (Place::Stream, Place::Inside(id, path)) => with(&engine, &id, async |files| {
            files.put_archive(std::io::stdin(), &path).await.map(drop).map_err(failed)
        })?,
        (Place::Inside(id, path), Place::Here(target)) => {
            with(&engine, &id, async |files| take(&files, &path, &target, &said).await)?;
        }
        (Place::Inside(id, path), Place::Stream) => with(&engine, &id, async |files| {
            let skipped = |skipped: &FileSkipped| said.skipped(skipped);
            files.take_archive(&path, std::io::stdout(), skipped).await.map(drop).map_err(failed)
        })?,
        _ => {
            return Err(Failure::new("exactly one side has to be in a sandbox").hint("write it as ID:PATH"));
        }
    }
    match said.missed.load(Ordering::Relaxed) {
        0 => Ok(ExitCode::SUCCESS),
        missed => Err(Failure::new(format!("{missed} of the files are not there as they are"))
            .hint("the lines above say which; make them readable, or copy again when nothing changes them")),
    }
}

/// What is said of files that did not get through as they are.
#[derive(Default)]
struct Remarks {
    /// How many should have.
    missed: AtomicUsize,
}

impl Remarks {
    fn skipped(&self, skipped: &FileSkipped) {
        self.say(&skipped.path, skipped.why());
    }

    fn remark(&self, remark: Remark<'_>) {
        self.say(
            remark.path,
            match remark.why {
                Why::Fifo => SkippedWhy::Fifo,
                Why::Socket => SkippedWhy::Socket,
                Why::Device => SkippedWhy::Device,
                Why::Unreadable(_) => SkippedWhy::Unreadable,
                Why::Vanished => SkippedWhy::Vanished,
                Why::TooDeep => SkippedWhy::TooDeep,
                Why::Shrank => SkippedWhy::Shrank,
                Why::Grew => SkippedWhy::Grew,
            },
        );
    }

    /// Pipes, sockets and devices are no files; whatever else is left out is missed.
    fn say(&self, path: &[u8], why: SkippedWhy) {
        let (why, is_file) = match why {
            SkippedWhy::Fifo => ("a pipe", false),
            SkippedWhy::Socket => ("a socket", false),
            SkippedWhy::Device => ("a device", false),
            SkippedWhy::Unreadable => ("it cannot be read", true),
            SkippedWhy::Vanished => ("it was removed meanwhile", true),
            SkippedWhy::TooDeep => ("it lies too deep", true),
            SkippedWhy::Shrank => ("it became shorter meanwhile; zeros are at its end", true),
            SkippedWhy::Grew => ("it became longer meanwhile; its end is missing", true),
        };
        if is_file {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        let path = escape(&String::from_utf8_lossy(path));
        let _ = writeln!(std::io::stderr(), "left out: '{path}' ({why})");
    }
}

fn with(
    engine: &Engine,
    text: &str,
    work: impl AsyncFnOnce(Files<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let id: SandboxId = engine.find(text)?;
    let spec = engine.spec(&id)?;
    in_runtime(async {
        let silent = |error| Failure::new(format!("sandbox {id} does not answer")).cause(error);
        let (connection, _) = wire::over_socket(engine.enter(&id)?, Side::Asking).map_err(silent)?;
        let files = Files::new(&connection, &spec);
        let moved = files.moved();
        let needless = Answered::needless();
        tokio::select! {
            done = work(files) => done,
            () = show_progress(&moved) => Ok(()),
            never = About { engine, id: &id }.watch(false, &needless) => match never {},
        }
    })
}

/// Shows a person how far it is, once it takes more than a second.
async fn show_progress(moved: &AtomicU64) {
    const LOOK: Duration = Duration::from_millis(500);
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    tokio::time::sleep(LOOK).await;
    loop {
        tokio::time::sleep(LOOK).await;
        let _ = write!(std::io::stderr(), "\r{} MiB \r", moved.load(Ordering::Relaxed) >> 20);
    }
}

/// Into a directory that is there under its own name, else as what is named.
async fn put(files: &Files<'_>, source: &Path, path: &[u8], said: &Arc<Remarks>) -> Result<(), Failure> {
    let metadata = std::fs::symlink_metadata(source)
        .map_err(|error| Failure::new(format!("cannot copy '{}'", source.display())).cause(error))?;
    let found = files.stat(path).await.map_err(failed)?.map(|stat| stat.kind());
    let (directory, name) = match found {
        Some(FileKind::Directory) => (path, &b""[..]),
        Some(_) if metadata.is_dir() => {
            let path = String::from_utf8_lossy(path);
            return Err(Failure::new(format!("'{path}' inside is a file")).hint("name a directory"));
        }
        _ => split(path)?,
    };
    let said = Arc::clone(said);
    let remark = move |remark: Remark<'_>| said.remark(remark);
    files.put(source, directory, name, remark).await.map(drop).map_err(failed)
}

/// Into a directory that is there under its own name, else as what is named.
async fn take(files: &Files<'_>, path: &[u8], target: &Path, said: &Remarks) -> Result<(), Failure> {
    let unusable = |error| Failure::new(format!("cannot use '{}'", target.display())).cause(error);
    let own = split(path).ok().map(|(_, name)| name).filter(|name| !matches!(*name, b"." | b".."));
    let taken = match (target.is_dir(), own) {
        (true, Some(name)) => files.take(path, target, name, |skipped| said.skipped(skipped)).await,
        (true, None) => {
            return Err(
                Failure::new("there is no name to copy it under").hint("name a target that is not there")
            );
        }
        (false, _) => {
            let whole = std::path::absolute(target).map_err(unusable)?;
            let (Some(above), Some(name)) = (whole.parent(), whole.file_name()) else {
                return Err(unusable(std::io::ErrorKind::InvalidInput.into()));
            };
            files.take(path, above, name.as_bytes(), |skipped| said.skipped(skipped)).await
        }
    };
    taken.map(drop).map_err(failed)
}

/// A path as the directory and the name in it.
fn split(path: &[u8]) -> Result<(&[u8], &[u8]), Failure> {
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    let (directory, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&b"/"[..], &trimmed[1..]),
        Some(at) => (&trimmed[..at], &trimmed[at + 1..]),
        None => (&b"."[..], trimmed),
    };
    if name.is_empty() {
        return Err(Failure::new("there is no path inside").hint("write it as ID:PATH"));
    }
    Ok((directory, name))
}

fn failed(error: FileError) -> Failure {
    let hint = match &error {
        FileError::Inside(..) => "check the path inside, and that the sandbox's user may use it",
        FileError::Pack(_) | FileError::Here { .. } => "check the path outside, and that you may use it",
        FileError::Unpack(_) => "what was unpacked before that stays where it is",
        FileError::NotStarted(_) => {
            "it may hold as many processes as it may (`agentbox ps`, `agentbox update --pids`), or too many files"
        }
        FileError::Pipe(_) => "close what else is open, or raise the limit of open files (`ulimit -n`)",
        FileError::Lost => "it may have been stopped: `agentbox ls -a` tells",
    };
    let mut failure = Failure::new(format!("cannot copy: {error}")).hint(hint);
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        failure = failure.cause(cause);
        source = cause.source();
    }
    failure
}
