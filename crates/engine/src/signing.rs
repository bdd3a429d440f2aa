//! The key that tokens of the proxy are signed with, where its owner gives none: made once, kept for its owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::directories::Directories;
use crate::error::EngineError;

/// How long it is.
const LENGTH: usize = 32;

impl Directories {
    /// The key; a new one where there is none. Of those who ask for the first time at once, all get the same.
    pub fn signing_key(&self) -> Result<Vec<u8>, EngineError> {
        self.make_state()?;
        let path = self.signing_key_file();
        let unusable = |source| EngineError::State { path: path.clone(), source };
        match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&path).and_then(|()| read(&path)).map_err(unusable)
            }
            read => read.map_err(unusable),
        }
    }
}

/// Whoever else could have written it could sign.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::symlink_metadata(path)?;
    let is_own = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
    if !metadata.is_file() || !is_own {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of yours alone"));
    }
    let key = fs::read(path)?;
    if key.len() < LENGTH {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too short to be a key"));
    }
    Ok(key)
}

/// Writes a whole key beside its place and gives it its name only if nothing has that.
fn make(path: &Path) -> io::Result<()> {
    let mut key = [0; LENGTH];
    getrandom(&mut key, GetRandomFlags::empty())?;
    let own = path.with_extension(std::process::id().to_string());
    // One of that name was left by a process that is gone.
    let _ = fs::remove_file(&own);
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own).and_then(|mut file| {
            file.write_all(&key)?;
            file.sync_all()
        });
    let named = written.and_then(|()| match fs::hard_link(&own, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&own);
    named
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn everybody_gets_the_same_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("proxy-key");
        make(&path).unwrap();
        let key = read(&path).unwrap();
        make(&path).unwrap();
        assert_eq!(read(&path).unwrap(), key);
        assert_eq!(key.len(), LENGTH);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_key_that_others_could_have_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("proxy-key");
        make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&path).is_err());
        fs::write(&path, "short").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read(&path).is_err());
    }
}
