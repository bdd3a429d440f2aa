//! A tree of ours in which git sees what it has to see of a layer, and nothing else: files that it may convert, attributes,
//! rules of what is ignored. Everything is copied by descriptor; there is no link in it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::error::ReviewError;

/// How much is copied between two looks at the limit.
const PIECE: usize = 1 << 20;

/// A file that is not larger is copied at once.
const SMALL: usize = 32 << 10;

/// The tree, made anew for each snapshot.
pub(crate) struct Staging {
    path: PathBuf,
    root: OwnedFd,
    made: HashSet<Vec<u8>>,
}

impl Staging {
    /// An empty one.
    pub(crate) fn make(path: PathBuf) -> Result<Self, ReviewError> {
        let failed = ReviewError::file(&path);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::create_dir(&path).map_err(failed)?;
        let root = File::open(&path).map_err(failed)?.into();
        Ok(Self { root, made: HashSet::new(), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, errno: Errno) -> ReviewError {
        ReviewError::file(&self.path)(errno.into())
    }

    /// Makes a directory and those above it.
    pub(crate) fn directory(&mut self, path: &[u8]) -> Result<(), ReviewError> {
        if path.is_empty() || self.made.contains(path) {
            return Ok(());
        }
        self.directory(above(path))?;
        match mkdirat(&self.root, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed(errno)),
        }
        self.made.insert(path.to_vec());
        Ok(())
    }

    /// Puts a rule of the base's into its place, as the same file.
    pub(crate) fn rule(&mut self, rules: &OwnedFd, path: &[u8]) -> Result<(), ReviewError> {
        self.directory(above(path))?;
        match linkat(rules, path, &self.root, path, AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Writes a file.
    pub(crate) fn bytes(
        &mut self,
        path: &[u8],
        bytes: &[u8],
        is_executable: bool,
    ) -> Result<(), ReviewError> {
        let mut file = self.create(path, is_executable)?;
        file.write_all(bytes).map_err(ReviewError::file(&self.path))
    }

    /// Copies a file; how many bytes it has. Not more than `most` are taken.
    pub(crate) fn file(
        &mut self,
        path: &[u8],
        source: &File,
        is_executable: bool,
        most: u64,
    ) -> Result<u64, ReviewError> {
        let target = self.create(path, is_executable)?;
        copy(source, &target, most).map_err(ReviewError::file(&self.path))
    }

    fn create(&mut self, path: &[u8], is_executable: bool) -> Result<File, ReviewError> {
        self.directory(above(path))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if is_executable { 0o700 } else { 0o600 });
        let mut target = openat(&self.root, path, flags, mode);
        if matches!(target, Err(Errno::EXIST)) {
            // A rule lies there; it may be the base's own file, which is not written to.
            unlinkat(&self.root, path, AtFlags::empty()).map_err(|errno| self.failed(errno))?;
            target = openat(&self.root, path, flags, mode);
        }
        Ok(File::from(target.map_err(|errno| self.failed(errno))?))
    }
}

/// The directory in which a path is.
pub(crate) fn above(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

/// Copies all there is, by sharing blocks where the file system can.
pub(crate) fn copy(source: &File, target: &File, most: u64) -> io::Result<u64> {
    let length = source.metadata()?.len();
    // Most files are small, and copied in fewer calls than it takes to ask for anything better.
    if length <= SMALL as u64 {
        return copy_by_hand(source, target, 0, most);
    }
    if length <= most && rustix::fs::ioctl_ficlone(target, source).is_ok() {
        return Ok(target.metadata()?.len());
    }
    let mut copied = 0;
    loop {
        match rustix::fs::copy_file_range(source, None, target, None, PIECE) {
            Ok(0) => break,
            Ok(count) => copied += count as u64,
            Err(Errno::INTR) => {}
            // From a file system to another one that does not know how.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_by_hand(source, target, copied, most);
            }
            Err(errno) => return Err(errno.into()),
        }
        if copied > most {
            return Ok(copied);
        }
    }
    // Some file systems copy nothing of what has no size.
    copy_by_hand(source, target, copied, most)
}

fn copy_by_hand(mut source: &File, mut target: &File, mut copied: u64, most: u64) -> io::Result<u64> {
    let mut piece = [0; SMALL];
    while copied <= most {
        let count = source.read(&mut piece)?;
        if count == 0 {
            break;
        }
        target.write_all(piece.get(..count).unwrap_or_default())?;
        copied += count as u64;
    }
    Ok(copied)
}
