//! An OCI layout: a directory of blobs and an index. It is somebody else's: nothing in it is opened through a link that
//! leads out.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::{Found, LARGEST_BLOB, index};
use crate::digest::Digest;
use crate::document::{self, Blob, Document, LARGEST_MANIFEST};
use crate::error::{ImageError, at};
use crate::store::Store;

/// A layout that is being read.
struct Layout<'a> {
    path: &'a Path,
    directory: OwnedFd,
}

impl Layout<'_> {
    fn open(&self, name: &str) -> Result<File, ImageError> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = self.path.join(name);
        let opened = rustix::fs::openat2(&self.directory, name, flags, Mode::empty(), resolve);
        let file = File::from(opened.map_err(|errno| at(&path)(errno.into()))?);
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(ImageError::NoImage { path, why: "a blob is no file" }),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn blob(&self, digest: &Digest) -> Result<File, ImageError> {
        self.open(&format!("blobs/sha256/{}", digest.hex()))
    }
}

impl Store {
    pub(super) fn read_layout(&self, path: &Path) -> Result<Vec<Found>, ImageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| at(path)(errno.into()))?;
        let layout = Layout { path, directory };
        let mut index = Vec::new();
        let file = layout.open("index.json")?.take(LARGEST_MANIFEST).read_to_end(&mut index);
        file.map_err(at(&path.join("index.json")))?;
        let lines = index::read(&index)?;
        for line in &lines {
            self.fetch(&layout, line.blob(), Some(&line.media_type))?;
        }
        self.find_in_index(&lines)
    }

    /// Takes in a manifest and all that it leads to.
    fn fetch(&self, layout: &Layout<'_>, manifest: Blob, media_type: Option<&str>) -> Result<(), ImageError> {
        self.copy(layout, &manifest, LARGEST_MANIFEST)?;
        let bytes = self.read_blob(&manifest.digest, LARGEST_MANIFEST)?;
        match document::read_document(&bytes, media_type) {
            // What is for other machines stays where it is.
            Err(ImageError::Platform { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(Document::Chosen(blob)) if media_type.is_some() => self.fetch(layout, blob, None),
            Ok(Document::Chosen(_)) => {
                let what = format!("the index {}", manifest.digest);
                Err(ImageError::Refused { what, why: "it is within another index" })
            }
            Ok(Document::Manifest(found)) => {
                self.copy(layout, &found.config, document::LARGEST_CONFIG)?;
                found.layers.iter().try_for_each(|layer| self.copy(layout, &layer.blob, LARGEST_BLOB))
            }
        }
    }

    fn copy(&self, layout: &Layout<'_>, blob: &Blob, most: u64) -> Result<(), ImageError> {
        if blob.size > most {
            return Err(ImageError::TooLarge { what: format!("the blob {}", blob.digest), most });
        }
        if self.has_sound_blob(blob) {
            return Ok(());
        }
        self.take_in_known(layout.blob(&blob.digest)?, blob)
    }
}
