//! Collects what no image and no sandbox needs any more: blobs, layers, and what killed processes left.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use rustix::fs::FlockOperation;

use super::Store;
use crate::digest::Digest;
use crate::error::{ImageError, at};
use crate::hands::Hands;

/// What the tar of a system that is being made is called, until it is taken in.
pub(super) const LEFT: &str = ".bootstrap-";

/// Directories of layers that sandboxes use, whether they run or wait to be started again.
pub type Used = BTreeSet<PathBuf>;

/// What was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Unpacked layers.
    pub layers: u64,
    /// Layers that no image needs and a sandbox uses.
    pub kept: u64,
}

impl Store {
    /// Collects. Waits for whoever brings an image; while it works nobody can.
    pub fn collect(&self, used: &Used, hands: &dyn Hands) -> Result<Collected, ImageError> {
        let _lock = self.lock("bringing", FlockOperation::LockExclusive)?;
        let (mut blobs, mut layers) = (BTreeSet::new(), BTreeSet::new());
        for listed in self.list()? {
            blobs.insert(listed.manifest.digest.hex().to_owned());
            // One that cannot be read needs nothing; `rm` removes it from the list.
            let Ok(image) = self.image(listed) else { continue };
            blobs.insert(image.manifest.config.digest.hex().to_owned());
            blobs.extend(image.manifest.layers.iter().map(|layer| layer.blob.digest.hex().to_owned()));
            layers.extend(image.config.layers.iter().map(|layer| layer.hex().to_owned()));
        }
        let mut collected = Collected::default();
        for (name, path) in self.named("blobs/sha256")? {
            if !blobs.contains(&name) {
                let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                fs::remove_file(&path).map_err(at(&path))?;
                collected.blobs += 1;
                collected.bytes += size;
            }
        }
        for (name, path) in self.named("layers")? {
            if name.starts_with('.') {
                hands.remove(&path)?;
                continue;
            }
            let Ok(layer) = format!("sha256:{name}").parse::<Digest>() else { continue };
            if layers.contains(&name) {
                continue;
            }
            let alone = FlockOperation::NonBlockingLockExclusive;
            let is_used = used.contains(&path) || self.facts_path_is_locked(&layer, alone);
            if is_used {
                collected.kept += 1;
                continue;
            }
            self.remove_layer(&layer, hands)?;
            collected.layers += 1;
        }
        for (name, path) in self.named("")? {
            if name.starts_with(LEFT) {
                let _ = fs::remove_file(path);
            }
        }
        for (name, path) in self.named("locks")? {
            if name.starts_with("blob-") || name.starts_with("layer-") {
                let _ = fs::remove_file(path);
            }
        }
        Ok(collected)
    }

    fn facts_path_is_locked(&self, layer: &Digest, how: FlockOperation) -> bool {
        match self.use_lock(layer, how) {
            Err(ImageError::File { source, .. }) => source.kind() == std::io::ErrorKind::WouldBlock,
            _ => false,
        }
    }

    fn named(&self, directory: &str) -> Result<Vec<(String, PathBuf)>, ImageError> {
        let path = self.root.join(directory);
        let entries = fs::read_dir(&path).map_err(at(&path))?.flatten();
        Ok(entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect())
    }
}
