//! Directories and files of the owner's that a sandbox may see, and which ones it never may.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{PathError, SandboxPath};

/// What the sandbox may do with a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Look, not touch.
    ReadOnly,
    /// Changes reach the owner's files at once.
    ReadWrite,
}

/// `SRC:DST[:ro|:rw]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on the host.
    pub source: PathBuf,
    /// Where it shows inside.
    pub target: SandboxPath,
    /// Read-only unless asked for.
    pub access: Access,
}

/// Why a text or a place is refused as a mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// Not of the form.
    #[error("'{0}' is not a mount: SRC:DST or SRC:DST:rw")]
    Malformed(String),
    /// A source with a NUL, or an empty one.
    #[error("'{0}' is not a path of the host")]
    Source(String),
    /// The target is no path inside.
    #[error(transparent)]
    Target(#[from] PathError),
    /// The source would hand over the host itself.
    #[error("'{path}' may not be mounted: it is, or holds, {protected}")]
    ForbiddenSource {
        /// What was asked for.
        path: String,
        /// What of the host's it would bring in.
        protected: String,
    },
    /// The target is a place that the walls need.
    #[error("'{0}' inside is not a place to mount on")]
    ForbiddenTarget(SandboxPath),
}

/// Trees of the host that no mount may bring in, nor any directory above them.
const PROTECTED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];
/// Places inside that are the walls' own.
const WALLS: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/etc", "/.agentbox"];

impl FromStr for Mount {
    type Err = MountError;

    fn from_str(text: &str) -> Result<Self, MountError> {
        let malformed = || MountError::Malformed(text.escape_debug().to_string());
        let (rest, access) = if let Some(rest) = text.strip_suffix(":rw") {
            (rest, Access::ReadWrite)
        } else {
            (text.strip_suffix(":ro").unwrap_or(text), Access::ReadOnly)
        };
        let (source, target) = rest.rsplit_once(':').ok_or_else(malformed)?;
        if source.is_empty() || source.contains('\0') {
            return Err(MountError::Source(source.escape_debug().to_string()));
        }
        let target: SandboxPath = target.parse()?;
        if let Some(error) = forbidden_target(&target) {
            return Err(error);
        }
        Ok(Self { source: PathBuf::from(source), target, access })
    }
}

/// Whether `target` would cover a wall.
#[must_use]
pub fn forbidden_target(target: &SandboxPath) -> Option<MountError> {
    let path = target.as_path();
    let covers = path == Path::new("/") || WALLS.iter().any(|wall| path.starts_with(wall));
    covers.then(|| MountError::ForbiddenTarget(target.clone()))
}

/// Whether the resolved `source` would bring in the host itself: kernel file systems, sockets in /run, or one
/// of our `own` directories; or a directory above any of these.
#[must_use]
pub fn forbidden_source(source: &Path, own: &[&Path]) -> Option<MountError> {
    let kernel = PROTECTED.iter().map(Path::new);
    let protected = kernel
        .chain(own.iter().copied())
        .find(|protected| source.starts_with(protected) || protected.starts_with(source))?;
    Some(MountError::ForbiddenSource {
        path: source.display().to_string().escape_debug().to_string(),
        protected: protected.display().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses() {
        let mount: Mount = "/data/set:/data:rw".parse().unwrap();
        assert_eq!(mount.source, Path::new("/data/set"));
        assert_eq!(mount.target.as_path(), Path::new("/data"));
        assert_eq!(mount.access, Access::ReadWrite);
        assert_eq!("a:/b".parse::<Mount>().unwrap().access, Access::ReadOnly);
        assert_eq!("a:b:/c:ro".parse::<Mount>().unwrap().source, Path::new("a:b"));
    }

    #[test]
    fn refuses() {
        for text in
            ["", "/a", ":/b", "/a:b", "/a:/..", "/a\0:/b", "/a:/", "/a:/proc/sys", "/a:/dev", "/a:/etc"]
        {
            assert!(text.parse::<Mount>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_host_itself_is_forbidden() {
        let own = [Path::new("/home/me/.local/state/agentbox")];
        for source in ["/", "/proc", "/proc/1", "/sys/fs", "/dev/shm", "/run/user/1000", "/home/me", "/home"]
        {
            assert!(forbidden_source(Path::new(source), &own).is_some(), "{source}");
        }
        for source in ["/home/me/project", "/srv/data", "/runner", "/opt"] {
            assert!(forbidden_source(Path::new(source), &own).is_none(), "{source}");
        }
    }
}
