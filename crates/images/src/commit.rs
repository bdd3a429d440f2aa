//! A new image: the layers of another, and one more over them.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use serde_json::{Value, json};

use crate::document::{Blob, LARGEST_CONFIG, LARGEST_MANIFEST, MOST_LAYERS, OCI_MANIFEST};
use crate::error::{ImageError, at};
use crate::hands::Hands;
use crate::import::LARGEST_BLOB;
use crate::progress::Progress;
use crate::reference::Reference;
use crate::store::{Image, Store};
use crate::written::{self, Written};

impl Store {
    /// A file without a name in the store, for a layer that is being written.
    pub fn spool(&self) -> Result<File, ImageError> {
        let path = self.directory().join("blobs/sha256").join(format!(".spool-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = file.map_err(at(&path))?;
        std::fs::remove_file(&path).map_err(at(&path))?;
        Ok(file)
    }

    /// Takes in a layer over the image that it was written over, which is run as that is.
    pub fn admit_over(
        &self,
        base: &Image,
        mut layer: File,
        reference: &Reference,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<Image, ImageError> {
        layer.seek(SeekFrom::Start(0)).map_err(at(self.directory()))?;
        let layer = self.take_in(layer, LARGEST_BLOB)?;
        let what = "the configuration of the image";
        if base.manifest.layers.len() >= MOST_LAYERS {
            return Err(ImageError::Refused { what: what.to_owned(), why: "it has 128 layers already" });
        }
        let broken = |source| ImageError::Document { what: what.to_owned(), source };
        let config = self.read_blob(&base.manifest.config.digest, LARGEST_CONFIG)?;
        let mut config: Value = serde_json::from_slice(&config).map_err(broken)?;
        let digests = config.pointer_mut("/rootfs/diff_ids").and_then(Value::as_array_mut);
        // It was read before, and has them.
        let digests =
            digests.ok_or(ImageError::Refused { what: what.to_owned(), why: "it has no layers" })?;
        digests.push(json!(layer.digest.to_string()));
        if let Some(history) = config.get_mut("history").and_then(Value::as_array_mut) {
            history.push(json!({"created_by": "agentbox commit"}));
        }
        let config = self.take_in(config.to_string().as_bytes(), LARGEST_CONFIG)?;
        let manifest = self.manifest_over(base, &config, &layer)?;
        let admitted = (&manifest.digest, OCI_MANIFEST);
        self.admit(Some(reference.clone()), admitted, hands, progress)
    }

    fn manifest_over(&self, base: &Image, config: &Blob, layer: &Blob) -> Result<Blob, ImageError> {
        let below = base.manifest.layers.iter();
        let mut layers: Vec<Written> =
            below.map(|layer| Written { blob: layer.blob.clone(), packing: layer.packing }).collect();
        layers.push(Written { blob: layer.clone(), packing: crate::document::Packing::Plain });
        self.take_in(written::manifest(config, &layers).as_slice(), LARGEST_MANIFEST)
    }
}
