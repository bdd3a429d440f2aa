//! `agentbox cp`: files and trees into a sandbox and out of it.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{Engine, FileError, Files};
use policy::SandboxId;
use wire::{FileKind, FileSkipped, Side};

use crate::arguments::Cp;
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
    match (Place::parse(&cp.source), Place::parse(&cp.target)) {
        (Place::Here(source), Place::Inside(id, path)) => {
            with(&engine, &id, async |files| put(&files, &source, &path).await)
        }
        (Place::Stream, Place::Inside(id, path)) => with(&engine, &id, async |files| {
            files.put_archive(std::io::stdin(), &path).await.map(drop).map_err(failed)
        }),
        (Place::Inside(id, path), Place::Here(target)) => {
            with(&engine, &id, async |files| take(&files, &path, &target).await)
        }
        (Place::Inside(id, path), Place::Stream) => with(&engine, &id, async |files| {
            files.take_archive(&path, std::io::stdout(), say_skipped).await.map(drop).map_err(failed)
        }),
        _ => Err(Failure::new("exactly one side has to be in a sandbox").hint("write it as ID:PATH")),
    }
}

fn with(
    engine: &Engine,
    text: &str,
    work: impl AsyncFnOnce(Files<'_>) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let id: SandboxId = engine.find(text)?;
    let spec = engine.look_at(&id)?.spec;
    in_runtime(async {
        let silent = |error| Failure::new(format!("sandbox {id} does not answer")).cause(error);
        let (connection, _) = wire::over_socket(engine.connect(&id)?, Side::Asking).map_err(silent)?;
        work(Files::new(&connection, &spec)).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Into a directory that is there under its own name, else as what is named.
async fn put(files: &Files<'_>, source: &Path, path: &[u8]) -> Result<(), Failure> {
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
    files.put(source, directory, name).await.map(drop).map_err(failed)
}

/// Into a directory that is there under its own name, else as what is named.
async fn take(files: &Files<'_>, path: &[u8], target: &Path) -> Result<(), Failure> {
    let unusable = |error| Failure::new(format!("cannot use '{}'", target.display())).cause(error);
    let own = split(path).ok().map(|(_, name)| name).filter(|name| !matches!(*name, b"." | b".."));
    let taken = match (target.is_dir(), own) {
        (true, Some(name)) => files.take(path, target, Some(name), say_skipped).await,
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
            files.take(path, above, Some(name.as_bytes()), say_skipped).await
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

/// What could not be brought along is said, and the rest is.
fn say_skipped(skipped: &FileSkipped) {
    let path = escape(&String::from_utf8_lossy(&skipped.path));
    let _ = writeln!(std::io::stderr(), "left out: '{path}' ({:?})", skipped.why());
}

fn failed(error: FileError) -> Failure {
    let mut failure = Failure::new(format!("cannot copy: {error}"));
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        failure = failure.cause(cause);
        source = cause.source();
    }
    failure
}
