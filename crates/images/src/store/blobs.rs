//! Blobs: files named by their digest. One that is coming has its digest behind a dot, and whoever writes it holds a
//! lock; what a killed process left of it is gone on with.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use failpoint::Point;
use rustix::fs::FlockOperation;

use super::Store;
use crate::digest::{Digest, Hasher};
use crate::document::{Blob, LARGEST_CONFIG};
use crate::error::{ImageError, at};

const PIECE: usize = 256 * 1024;

/// A blob of which some is here.
#[derive(Debug)]
pub struct Incoming {
    path: PathBuf,
    named: PathBuf,
    file: File,
    hasher: Hasher,
    count: u64,
    expected: Blob,
    _lock: File,
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Hasher")
    }
}

impl Store {
    /// Where a blob is or would be.
    #[must_use]
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    /// Whether it is here.
    #[must_use]
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }

    /// Whether it is here and, where it is small enough to look, whole. Of a layer that is seen when it is unpacked.
    pub(crate) fn has_sound_blob(&self, blob: &Blob) -> bool {
        let is_damaged = blob.size <= LARGEST_CONFIG && self.expel_if_damaged(&blob.digest).is_some();
        !is_damaged && self.has_blob(&blob.digest)
    }

    pub(super) fn blob_size(&self, digest: &Digest) -> Result<u64, ImageError> {
        let path = self.blob_path(digest);
        std::fs::metadata(&path).map(|metadata| metadata.len()).map_err(at(&path))
    }

    /// Opens one.
    pub fn open_blob(&self, digest: &Digest) -> Result<File, ImageError> {
        let path = self.blob_path(digest);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ImageError::Absent(format!("the blob {digest}")))
            }
            opened => opened.map_err(at(&path)),
        }
    }

    /// Reads a small one whole, and makes sure of it once more: what is on a disk may have changed.
    pub fn read_blob(&self, digest: &Digest, most: u64) -> Result<Vec<u8>, ImageError> {
        let what = format!("the blob {digest}");
        let mut bytes = Vec::new();
        self.open_blob(digest)?
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(at(&self.blob_path(digest)))?;
        if bytes.len() as u64 > most {
            return Err(ImageError::TooLarge { what, most });
        }
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(ImageError::Mismatch { what, expected: digest.clone(), found });
        }
        Ok(bytes)
    }

    /// Removes a blob that is not what its name says any more, so that whoever wants it brings it anew, and tells of it.
    pub(crate) fn expel_if_damaged(&self, digest: &Digest) -> Option<ImageError> {
        let mut file = self.open_blob(digest).ok()?;
        let (mut hasher, mut buffer) = (Hasher::default(), vec![0; PIECE]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => hasher.update(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Whatever it is, a disk that cannot be read does not say so.
                Err(_) => return None,
            }
        }
        let found = hasher.finish();
        if found == *digest {
            return None;
        }
        let _ = std::fs::remove_file(self.blob_path(digest));
        Some(ImageError::Mismatch { what: format!("the blob {digest}"), expected: digest.clone(), found })
    }

    /// Begins to take a blob in, or goes on with what is here of it; none where all of it is. Waits for whoever does the
    /// same.
    pub fn begin_blob(&self, expected: &Blob) -> Result<Option<Incoming>, ImageError> {
        let named = self.blob_path(&expected.digest);
        if named.is_file() {
            return Ok(None);
        }
        let lock = self.lock(&format!("blob-{}", expected.digest.hex()), FlockOperation::LockExclusive)?;
        if named.is_file() {
            return Ok(None);
        }
        let path = named.with_file_name(format!(".{}", expected.digest.hex()));
        let begun = (|| {
            let mut options = File::options();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            let mut hasher = Hasher::default();
            if file.metadata()?.len() > expected.size {
                file.set_len(0)?;
            }
            let mut buffer = vec![0; PIECE];
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => hasher.update(&buffer[..count]),
                }
            }
            let count = file.stream_position()?;
            Ok((file, hasher, count))
        })();
        let (file, hasher, count) = begun.map_err(at(&path))?;
        Ok(Some(Incoming { path, named, file, hasher, count, expected: expected.clone(), _lock: lock }))
    }

    /// Takes bytes in whose digest is not known before.
    pub fn take_in(&self, mut input: impl Read, most: u64) -> Result<Blob, ImageError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".new-{}-{number}", std::process::id());
        let path = self.root.join("blobs/sha256").join(name);
        let mut file = File::options();
        let file = file.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(at(&path));
        let taken = file.and_then(|mut file| {
            let mut hasher = Hasher::default();
            let (mut count, mut buffer) = (0, vec![0; PIECE]);
            loop {
                let read = match input.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(at(&path)(error)),
                };
                count += read as u64;
                if count > most {
                    return Err(ImageError::TooLarge { what: "the image".to_owned(), most });
                }
                hasher.update(&buffer[..read]);
                file.write_all(&buffer[..read]).map_err(at(&path))?;
            }
            file.sync_all().map_err(at(&path))?;
            let digest = hasher.finish();
            failpoint::pass(Point::ImageBlobUnnamed);
            std::fs::rename(&path, self.blob_path(&digest)).map_err(at(&path))?;
            Ok(Blob { digest, size: count })
        });
        if taken.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        taken
    }

    /// Takes a blob in whose digest and size are known, from a stream of exactly its bytes.
    pub fn take_in_known(&self, mut input: impl Read, expected: &Blob) -> Result<(), ImageError> {
        if self.has_sound_blob(expected) {
            return Ok(());
        }
        let Some(mut incoming) = self.begin_blob(expected)? else { return Ok(()) };
        incoming.restart()?;
        let mut buffer = vec![0; PIECE];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return incoming.finish(),
                Ok(count) => incoming.write(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(at(&incoming.path)(error)),
            }
        }
    }
}

impl Incoming {
    /// How many bytes are here.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Forgets what is here.
    pub fn restart(&mut self) -> Result<(), ImageError> {
        self.hasher = Hasher::default();
        self.count = 0;
        self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(at(&self.path))?;
        Ok(())
    }

    /// Adds some; never more than were announced.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        let count = self.count + bytes.len() as u64;
        if count > self.expected.size {
            self.discard();
            let what = format!("the blob {}", self.expected.digest);
            return Err(ImageError::Length { what, expected: self.expected.size, found: count });
        }
        self.file.write_all(bytes).map_err(at(&self.path))?;
        self.hasher.update(bytes);
        self.count = count;
        Ok(())
    }

    fn discard(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Gives the blob its name, if it is the one that was asked for. What is not is removed.
    pub fn finish(mut self) -> Result<(), ImageError> {
        let what = format!("the blob {}", self.expected.digest);
        if self.count != self.expected.size {
            // It may go on where it was cut off.
            return Err(ImageError::Length { what, expected: self.expected.size, found: self.count });
        }
        let found = std::mem::take(&mut self.hasher).finish();
        if found != self.expected.digest {
            self.discard();
            return Err(ImageError::Mismatch { what, expected: self.expected.digest.clone(), found });
        }
        self.file.sync_all().map_err(at(&self.path))?;
        failpoint::pass(Point::ImageBlobUnnamed);
        std::fs::rename(&self.path, &self.named).map_err(at(&self.named))
    }
}
