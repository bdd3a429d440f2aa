//! Unpacked layers: directories named by the digest of what was unpacked, which no sandbox copies and none may write to.
//! Beside each stands what is known of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use failpoint::Point;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Image, Store};
use crate::beside::beside;
use crate::digest::Digest;
use crate::error::{ImageError, at};
use crate::hands::Hands;
use crate::progress::{Progress, Step};
use crate::unpack::Unpacked;

/// The most layers that are unpacked at once.
const AT_ONCE: usize = 4;

/// What is known of a layer.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// What the ids of its files stand for.
    ids: String,
    /// How much there is, and what was left out.
    unpacked: Unpacked,
}

/// The layers of an image while somebody uses them, the lowest first: they are not removed.
#[derive(Debug)]
pub struct HeldLayers {
    /// Where they are.
    pub directories: Vec<PathBuf>,
    _locks: Vec<File>,
}

impl Store {
    /// Where an unpacked layer is or would be.
    #[must_use]
    pub fn layer_path(&self, layer: &Digest) -> PathBuf {
        self.root.join("layers").join(layer.hex())
    }

    fn facts_path(&self, layer: &Digest) -> PathBuf {
        self.root.join("layers").join(format!("{}.json", layer.hex()))
    }

    fn facts(&self, layer: &Digest) -> Option<Facts> {
        serde_json::from_slice(&fs::read(self.facts_path(layer)).ok()?).ok()
    }

    /// What was unpacked of a layer, and what was left out.
    #[must_use]
    pub fn unpacked(&self, layer: &Digest) -> Option<Unpacked> {
        self.facts(layer).map(|facts| facts.unpacked)
    }

    /// Unpacks a layer, unless it is; two who want the same one wait for each other.
    pub(crate) fn unpack_layer(
        &self,
        blob: &Digest,
        layer: &Digest,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<(), ImageError> {
        let named = self.layer_path(layer);
        let is_here = || named.is_dir() && self.facts(layer).is_some_and(|facts| facts.ids == hands.ids());
        if is_here() {
            return Ok(());
        }
        let _lock = self.lock(&format!("layer-{}", layer.hex()), FlockOperation::LockExclusive)?;
        if is_here() {
            return Ok(());
        }
        progress(Step::Unpacking(blob.clone()));
        // One that was made for other ids cannot be used, and whoever did may be gone.
        self.remove_layer(layer, hands)?;
        let begun = self.root.join("layers").join(format!(".{}", layer.hex()));
        hands.remove(&begun)?;
        fs::DirBuilder::new().mode(0o755).create(&begun).map_err(at(&begun))?;
        let made = hands.unpack(&self.blob_path(blob), &begun, layer);
        if let Err(error) = made.and_then(|unpacked| self.name_layer(layer, &begun, hands.ids(), unpacked)) {
            // Room for the next try; what cannot be removed now is removed by it.
            let _ = hands.remove(&begun);
            return Err(self.expel_if_damaged(blob).unwrap_or(error));
        }
        failpoint::pass(Point::ImageLayerMade);
        progress(Step::Unpacked(blob.clone()));
        Ok(())
    }

    /// Gives a layer that is whole its name, after what is known of it is on file.
    fn name_layer(
        &self,
        layer: &Digest,
        begun: &Path,
        ids: String,
        unpacked: Unpacked,
    ) -> Result<(), ImageError> {
        failpoint::pass(Point::ImageLayerUnnamed);
        let (named, facts) = (self.layer_path(layer), self.facts_path(layer));
        let text = serde_json::to_vec(&Facts { ids, unpacked }).map_err(io::Error::other);
        let written = text.and_then(|text| fs::write(&facts, text)).map_err(at(&facts));
        let done = written.and_then(|()| fs::rename(begun, &named).map_err(at(&named)));
        done.inspect_err(|_| drop(fs::remove_file(&facts)))
    }

    /// Unpacks what is not unpacked of an image, as many layers at once as there are processors for.
    pub(super) fn unpack_layers(
        &self,
        image: &Image,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<(), ImageError> {
        let layers: Vec<_> = image.manifest.layers.iter().zip(&image.config.layers).collect();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        beside(&layers, processors.min(AT_ONCE), |(blob, layer)| {
            self.unpack_layer(&blob.blob.digest, layer, hands, progress)
        })
    }

    /// Removes a layer: first its name, then what it was.
    pub(super) fn remove_layer(&self, layer: &Digest, hands: &dyn Hands) -> Result<(), ImageError> {
        let (named, gone) =
            (self.layer_path(layer), self.root.join("layers").join(format!(".gone-{}", layer.hex())));
        hands.remove(&gone)?;
        match fs::rename(&named, &gone) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed.map_err(at(&named))?,
        }
        let _ = fs::remove_file(self.facts_path(layer));
        hands.remove(&gone)
    }

    /// Takes hold of the layers of an image, and unpacks what is missing or was unpacked for other ids.
    pub fn hold(
        &self,
        image: &Image,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<HeldLayers, ImageError> {
        let _bringing = self.bringing()?;
        let (mut directories, mut locks) = (Vec::new(), Vec::new());
        self.unpack_layers(image, hands, progress)?;
        for layer in &image.config.layers {
            let path = self.layer_path(layer);
            let lock = self.use_lock(layer, FlockOperation::LockShared)?;
            locks.push(lock);
            directories.push(path);
        }
        Ok(HeldLayers { directories, _locks: locks })
    }

    /// Held by whoever uses a layer, shared; alone by whoever removes it.
    pub(super) fn use_lock(&self, layer: &Digest, how: FlockOperation) -> Result<File, ImageError> {
        let path = self.facts_path(layer);
        let locked = File::open(&path).and_then(|file| {
            flock(&file, how)?;
            Ok(file)
        });
        locked.map_err(at(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::Own;
    use crate::unpack::Owners;

    // As on a disk that another layer has filled in the meantime.
    #[test]
    fn a_layer_of_which_nothing_can_be_put_on_file_is_not_left_half_made() {
        const EMPTY: [u8; 1024] = [0; 1024];
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let layer = store.take_in(EMPTY.as_slice(), 1024).unwrap().digest;
        let facts = store.facts_path(&layer);
        let unpack = || store.unpack_layer(&layer, &layer, &Own { owners: Owners::Dropped }, &|_| {});
        fs::create_dir(&facts).unwrap();
        assert!(matches!(unpack(), Err(ImageError::File { path, .. }) if path == facts));
        assert_eq!(fs::read_dir(directory.path().join("layers")).unwrap().count(), 1);
        fs::remove_dir(&facts).unwrap();
        unpack().unwrap();
        assert!(store.layer_path(&layer).is_dir() && store.unpacked(&layer).is_some());
    }
}
