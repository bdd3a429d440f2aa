//! Who makes and removes the files of a layer. They belong to ids that only a process in the right user namespace can
//! give, so that whoever keeps the store may have to ask another process to do it.

use std::fs::File;
use std::path::Path;

use archive::Closed;
use rustix::fs::CWD;

use crate::digest::Digest;
use crate::error::{ImageError, at};
use crate::unpack::{self, Owners, Unpacked};

/// Makes and removes the files of layers.
pub trait Hands: Sync {
    /// Unpacks a blob into a directory that is there and empty.
    fn unpack(&self, blob: &Path, directory: &Path, layer: &Digest) -> Result<Unpacked, ImageError>;
    /// Removes a directory and all that is in it.
    fn remove(&self, directory: &Path) -> Result<(), ImageError>;
    /// What the ids of its files stand for; layers that were made for others are made anew.
    fn ids(&self) -> String;
}

/// Those of the calling process itself.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Whom the files belong to.
    pub owners: Owners,
}

impl Hands for Own {
    fn unpack(&self, blob: &Path, directory: &Path, layer: &Digest) -> Result<Unpacked, ImageError> {
        let file = File::open(blob).map_err(at(blob))?;
        let unpacked = unpack::unpack(file, directory, layer, self.owners)
            .map_err(|error| ImageError::Layer { layer: layer.clone(), source: error.into() })?;
        // Whoever finds the directory under its name believes it: it has to be on the disk before.
        let synced = File::open(directory).and_then(|directory| Ok(rustix::fs::syncfs(directory)?));
        synced.map_err(at(directory))?;
        Ok(unpacked)
    }

    fn remove(&self, directory: &Path) -> Result<(), ImageError> {
        use std::os::unix::ffi::OsStrExt as _;
        let emptied = archive::empty(CWD, directory.as_os_str().as_bytes(), Closed::Opened);
        let removed =
            emptied.map_err(|error| error.errno.into()).and_then(|_| std::fs::remove_dir(directory));
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(directory)),
        }
    }

    fn ids(&self) -> String {
        match self.owners {
            Owners::Kept => "image".to_owned(),
            Owners::Dropped => "one".to_owned(),
        }
    }
}
