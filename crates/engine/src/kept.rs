//! What of a sandbox outlives its processes: its specification, what was last known of it, its workspace and its
//! outputs, in a directory of its own. The directory is there from the first moment to `rm`; one that cannot be
//! read harms no other.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use handover::{Filed, SPEC_FILE, STATE_VERSION, STATUS_FILE, Status};
use policy::SandboxId;
use rustix::fs::{FlockOperation, flock};

use crate::error::EngineError;

/// No file of ours is larger.
const LARGEST: u64 = 8 << 20;

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

    /// Makes the directory with all that is to be in it; the specification comes last.
    pub(crate) fn make(&self, filed: &Filed) -> Result<(), EngineError> {
        let unusable = |source| EngineError::State { path: self.directory.clone(), source };
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path).map_err(unusable);
        make(&self.directory)?;
        let made = jail::KEPT
            .iter()
            .try_for_each(|(name, _)| make(&self.directory.join(name)))
            .and_then(|()| filed.write(&self.directory).map_err(unusable));
        if made.is_err() {
            let _ = fs::remove_dir_all(&self.directory);
        }
        made
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

    /// Removes everything. What the agent closed against reading is opened first.
    pub(crate) fn remove(&self) -> Result<(), EngineError> {
        let mut removed = fs::remove_dir_all(&self.directory);
        if removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            open_up(&self.directory);
            removed = fs::remove_dir_all(&self.directory);
        }
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|source| EngineError::State { path: self.directory.clone(), source }),
        }
    }
}

/// Makes every directory of a tree one that its owner may empty. Nothing runs in it any more; links are left alone.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
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
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let mut ids: Vec<SandboxId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort();
    ids
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
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
