//! Where things of ours are on the host: the runtime directory of whoever calls.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::EngineError;

/// The directories of one caller.
#[derive(Clone, Debug)]
pub struct Directories {
    runtime: PathBuf,
    state: PathBuf,
}

impl Directories {
    /// Finds them, and makes the runtime directory if it is not there.
    pub fn open() -> Result<Self, EngineError> {
        let uid = geteuid();
        let variable =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let runtime = if uid.is_root() {
            PathBuf::from("/run/agentbox")
        } else {
            // One that is gone, as after a log-out, is as good as none.
            variable("XDG_RUNTIME_DIR").filter(|directory| directory.is_dir()).map_or_else(
                || PathBuf::from(format!("/tmp/agentbox-{}", uid.as_raw())),
                |directory| directory.join("agentbox"),
            )
        };
        let home =
            std::env::var_os("AGENTBOX_HOME").map(PathBuf::from).filter(|home| !home.as_os_str().is_empty());
        if let Some(home) = home.as_ref().filter(|home| home.is_relative()) {
            return Err(EngineError::RelativeHome(home.clone()));
        }
        let state = home
            .or_else(|| uid.is_root().then(|| PathBuf::from("/var/lib/agentbox")))
            .or_else(|| variable("XDG_STATE_HOME").map(|directory| directory.join("agentbox")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/state/agentbox")))
            .unwrap_or_else(|| runtime.join("state"));
        let directories = Self { runtime, state };
        RUNTIME.make_private(&directories.runtime)?;
        RUNTIME.make_private(&directories.sandboxes())?;
        Ok(directories)
    }

    /// Given ones.
    #[cfg(test)]
    pub(crate) fn at(runtime: &Path, state: &Path) -> Self {
        Self { runtime: runtime.to_owned(), state: state.to_owned() }
    }

    /// The runtime directories of sandboxes.
    #[must_use]
    pub fn sandboxes(&self) -> PathBuf {
        self.runtime.join("sandboxes")
    }

    /// What of sandboxes outlives their processes.
    #[must_use]
    pub fn kept(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    /// What is on record of sandboxes.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// The store of images.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// The key that tokens are signed with, where the owner gives none.
    pub(crate) fn signing_key_file(&self) -> PathBuf {
        self.state.join("proxy-key")
    }

    /// The file whose time says when records last expired by themselves.
    pub(crate) fn expiry_stamp(&self) -> PathBuf {
        self.state.join("expired")
    }

    /// What is known of the programs of other backends.
    pub(crate) fn backends(&self) -> PathBuf {
        self.state.join("backends.json")
    }

    /// What is built to be installed.
    pub(crate) fn setup(&self) -> PathBuf {
        self.state.join("setup")
    }

    /// Makes the state directory, if it is not there.
    pub(crate) fn make_state(&self) -> Result<(), EngineError> {
        if !self.state.exists() {
            let above = self.state.parent().unwrap_or(&self.state);
            let unusable = |source| EngineError::State { path: above.to_owned(), source };
            DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(unusable)?;
        }
        STATE.make_private(&self.state)?;
        STATE.make_private(&self.kept())?;
        STATE.make_private(&self.audit())
    }

    /// The file of locks for root's id ranges.
    #[must_use]
    pub fn id_ranges(&self) -> PathBuf {
        self.runtime.join("id-ranges")
    }

    /// Directories that no sandbox may ever see, by where they really are.
    #[must_use]
    pub fn own(&self) -> Vec<PathBuf> {
        vec![resolve(&self.runtime), resolve(&self.state)]
    }
}

/// Follows links as far as the path exists.
fn resolve(path: &Path) -> PathBuf {
    let real = |ancestor: &Path| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(fs::canonicalize(ancestor).ok()?.join(rest))
    };
    path.ancestors().find_map(real).unwrap_or_else(|| path.to_owned())
}

/// What a directory of ours is for.
struct Purpose {
    /// The variable that names another one.
    variable: &'static str,
    /// What is said of one that cannot be used.
    unusable: fn(PathBuf, io::Error) -> EngineError,
}

const RUNTIME: Purpose =
    Purpose { variable: "XDG_RUNTIME_DIR", unusable: |path, source| EngineError::File { path, source } };
const STATE: Purpose =
    Purpose { variable: "AGENTBOX_HOME", unusable: |path, source| EngineError::State { path, source } };

impl Purpose {
    /// Makes a directory for the caller alone. One that is there already must be the caller's: a name in /tmp
    /// could be taken by anybody.
    fn make_private(&self, path: &Path) -> Result<(), EngineError> {
        let unusable = |source| (self.unusable)(path.to_owned(), source);
        // It mostly is there, and to ask costs a fraction of trying to make it.
        let mut looked = fs::symlink_metadata(path);
        if looked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            match DirBuilder::new().mode(0o700).create(path) {
                Ok(()) => return Ok(()),
                // Somebody else did meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(unusable(source)),
            }
            looked = fs::symlink_metadata(path);
        }
        let metadata = looked.map_err(unusable)?;
        let path = path.to_owned();
        if metadata.uid() != geteuid().as_raw() {
            return Err(EngineError::Foreign { path, owner: metadata.uid(), variable: self.variable });
        }
        if !metadata.is_dir() {
            return Err((self.unusable)(path, io::ErrorKind::NotADirectory.into()));
        }
        match metadata.mode() & 0o7777 {
            mode if mode & 0o077 != 0 => Err(EngineError::Open { path, mode }),
            _ => Ok(()),
        }
    }
}
