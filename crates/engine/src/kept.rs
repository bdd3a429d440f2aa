//! What of a sandbox outlives its processes: its specification, what was last known of it, its workspace and its
//! outputs, in a directory of its own. The directory is there from the first moment to `rm`; one that cannot be
//! read harms no other.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use archive::Closed;
use failpoint::Point;
use handover::{Filed, Reason, SPEC_FILE, STATE_VERSION, STATUS_FILE, State, Status, UNCLAIMED_FILE};
use policy::SandboxId;
use rustix::fs::{CWD, FlockOperation, flock};

use crate::error::EngineError;
use crate::runtime;

/// What a directory is called before it is a sandbox's, and after. Neither is an id.
const MADE: &str = ".new-";
const GONE: &str = ".gone-";

/// No file of ours is larger.
const LARGEST: u64 = 8 << 20;

/// Hardly one is larger, and then it is read at once.
const USUAL: usize = 8 << 10;

/// Reads the specification in a directory of `id`'s.
pub(crate) fn read_filed(directory: &Path, id: &SandboxId) -> io::Result<Filed> {
    let filed: Filed = read_json(&directory.join(SPEC_FILE))?;
    check_version(filed.version)?;
    if filed.spec.id != *id {
        return Err(io::Error::other(format!("its specification is that of {}", filed.spec.id)));
    }
    Ok(filed)
}

/// The directory of one sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    directory: PathBuf,
    id: SandboxId,
}

impl Kept {
    pub(crate) fn of(all: &Path, id: &SandboxId) -> Self {
        Self { directory: all.join(id.as_str()), id: id.clone() }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn exists(&self) -> bool {
        self.directory.exists()
    }

    fn called(&self, prefix: &str) -> PathBuf {
        self.directory.with_file_name(format!("{prefix}{}", self.id))
    }

    fn unusable(&self) -> impl Fn(io::Error) -> EngineError {
        move |source| EngineError::State { path: self.directory.clone(), source }
    }

    /// Makes the directory with all that is to be in it; it is there whole or not at all. Nobody has been told of the
    /// sandbox then. The lock of all is held.
    pub(crate) fn make(&self, filed: &Filed) -> Result<Unclaimed, EngineError> {
        let begun = self.called(MADE);
        let made = fill(&begun, filed).and_then(|lock| {
            fs::rename(&begun, &self.directory)?;
            Ok(Unclaimed { file: self.directory.join(UNCLAIMED_FILE), _lock: lock })
        });
        if made.is_err() {
            let _ = discard(&begun);
        }
        failpoint::pass(Point::EngineKeptMade);
        made.map_err(self.unusable())
    }

    /// Whether nobody has been told of it yet.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.directory.join(UNCLAIMED_FILE).exists()
    }

    /// Says of one whose keeper was killed that it has ended: the numbers of its processes are others' by now. Only
    /// whoever holds its lock may.
    pub(crate) fn forget_processes(&self) -> Result<(), EngineError> {
        let Some(Status { state: State::Running { since_ms, .. }, .. }) = self.status()? else {
            return Ok(());
        };
        let ended = State::Stopped { at_ms: since_ms, reason: Reason::Killed, code: None, why: None };
        let written = Status::new(ended).write(&self.directory);
        written.map_err(|source| EngineError::State { path: self.directory.clone(), source })
    }

    /// Whether whoever made it is gone and nobody has been told of it.
    pub(crate) fn is_abandoned(&self) -> bool {
        runtime::lock(&self.directory.join(UNCLAIMED_FILE)).is_ok()
    }

    pub(crate) fn filed(&self) -> Result<Filed, EngineError> {
        read_filed(&self.directory, &self.id)
            .map_err(|source| EngineError::Damaged { id: self.id.to_string(), source })
    }

    /// What was last known; none where it has never run.
    pub(crate) fn status(&self) -> Result<Option<Status>, EngineError> {
        let damaged = |source| EngineError::Damaged { id: self.id.to_string(), source };
        match read_json::<Status>(&self.directory.join(STATUS_FILE)) {
            Ok(status) => check_version(status.version).map(|()| Some(status)).map_err(damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(damaged(error)),
        }
    }

    /// Removes everything; whether there was anything. It goes from the list at once, whole.
    pub(crate) fn remove(&self) -> Result<bool, EngineError> {
        let gone = self.called(GONE);
        match fs::rename(&self.directory, &gone) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            renamed => renamed.map_err(self.unusable())?,
        }
        failpoint::pass(Point::EngineUnlisted);
        discard(&gone).map_err(|source| EngineError::State { path: gone, source })?;
        failpoint::pass(Point::EngineKeptRemoved);
        Ok(true)
    }
}

/// A new sandbox of which nobody has been told. It ends with whoever made it, and the next command removes it.
#[derive(Debug)]
#[must_use = "a sandbox that is not claimed does not stay"]
pub struct Unclaimed {
    file: PathBuf,
    _lock: File,
}

impl Unclaimed {
    /// Somebody has been told of it, and it stays.
    pub fn claim(self) -> Result<(), EngineError> {
        failpoint::pass(Point::EngineUnclaimed);
        fs::remove_file(&self.file).map_err(|source| EngineError::State { path: self.file, source })?;
        failpoint::pass(Point::EngineClaimed);
        Ok(())
    }
}

/// Makes a directory for a sandbox, and the lock of whoever makes it; the specification comes last.
fn fill(directory: &Path, filed: &Filed) -> io::Result<File> {
    let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
    make(directory)?;
    failpoint::attempt(Point::EngineKeptBegun)?;
    jail::KEPT.iter().try_for_each(|(name, _)| make(&directory.join(name)))?;
    let unclaimed = directory.join(UNCLAIMED_FILE);
    File::create_new(&unclaimed)?;
    let lock = runtime::lock(&unclaimed)?;
    filed.write(directory)?;
    failpoint::pass(Point::EngineSpecWritten);
    Ok(lock)
}

/// Removes a tree, however deep it is and whatever the agent closed in it; what another command removes at the same time
/// is as good as removed.
fn discard(directory: &Path) -> io::Result<()> {
    let emptied = archive::empty(CWD, directory.as_os_str().as_bytes(), Closed::Opened);
    let removed = emptied.map_err(|error| error.errno.into()).and_then(|_| fs::remove_dir(directory));
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes what commands that were killed left half made or half removed. What cannot be removed is tried again by the
/// next command.
pub(crate) fn sweep(all: &Path) {
    let discard_all = |prefix| {
        let left = names(all).into_iter().filter(|name| is_of(prefix, name));
        left.for_each(|name| drop(discard(&all.join(name))));
    };
    discard_all(GONE);
    // What is being made is made under the lock.
    if let Ok(_lock) = runtime::lock(all) {
        discard_all(MADE);
    }
}

/// Whether none of these names is of what is half made or half removed.
pub(crate) fn are_swept(names: &[String]) -> bool {
    !names.iter().any(|name| is_of(MADE, name) || is_of(GONE, name))
}

fn is_of(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|id| id.parse::<SandboxId>().is_ok())
}

/// Nobody else makes or removes a sandbox while this is held.
pub(crate) fn lock(all: &Path) -> Result<File, EngineError> {
    let locked = File::open(all).and_then(|directory| {
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    });
    locked.map_err(|source| EngineError::State { path: all.to_owned(), source })
}

/// The ids of directories below `all`.
pub(crate) fn ids(all: &Path) -> Vec<SandboxId> {
    ids_among(&names(all))
}

/// The same among names that were listed before.
pub(crate) fn ids_among(names: &[String]) -> Vec<SandboxId> {
    let mut ids: Vec<SandboxId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    ids.sort();
    ids
}

/// What is below `all`, as far as it is text.
pub(crate) fn names(all: &Path) -> Vec<String> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    use std::io::Read as _;
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn check_version(version: u32) -> io::Result<()> {
    if version == STATE_VERSION {
        return Ok(());
    }
    let message =
        format!("it was written as version {version}, and this program knows version {STATE_VERSION}");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}
