//! A root file system that is no image yet: a tar becomes the only layer as it is, a directory is packed first.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{Found, LARGEST_BLOB};
use crate::decode::Decoded;
use crate::document::OCI_MANIFEST;
use crate::error::{ImageError, at};
use crate::pack;
use crate::store::Store;
use crate::unpack::Owners;
use crate::written::Run;

impl Store {
    pub(super) fn pack_rootfs(&self, path: &Path) -> Result<Found, ImageError> {
        let file = File::open(path).map_err(at(path))?;
        let blob = self.take_in(file, LARGEST_BLOB)?;
        let diff = self.open_blob(&blob.digest)?;
        let diff = Decoded::open(diff).and_then(Decoded::finish).map_err(at(path))?;
        let manifest = self.image_of_layer(&blob, &diff, &Run::default())?;
        Ok(Found { manifest, media_type: OCI_MANIFEST.to_owned(), names: Vec::new() })
    }

    pub(super) fn pack_directory(&self, path: &Path, owners: Owners) -> Result<Found, ImageError> {
        let directory = File::open(path).map_err(at(path))?;
        let (reader, writer) = io::pipe().map_err(at(path))?;
        let blob = std::thread::scope(|scope| {
            let packer =
                scope.spawn(move || pack::pack(&directory, &pack::Whose::in_directory(owners), writer));
            let taken = self.take_in(reader, LARGEST_BLOB);
            let packed = packer.join().map_err(|_| io::Error::other("the thread that packs it was lost"));
            // Where both failed, what could not be stored is why it could not be packed.
            let blob = taken?;
            packed.and_then(|packed| packed).map_err(at(path))?;
            Ok::<_, ImageError>(blob)
        })?;
        let manifest = self.image_of_layer(&blob, &blob.digest, &Run::default())?;
        Ok(Found { manifest, media_type: OCI_MANIFEST.to_owned(), names: Vec::new() })
    }
}
