//! An image as a file: an OCI archive, with what docker reads beside, so that docker, podman and skopeo load it.

use std::io::{self, Write};
use std::path::Path;

use archive::{Member, Output, What, Writer};
use serde_json::json;

use crate::digest::Digest;
use crate::document::{Blob, OCI_INDEX, OCI_MANIFEST};
use crate::error::ImageError;
use crate::store::{Image, Store};
use crate::written::{self, Written};

impl Store {
    /// Writes an image as an archive; `path` is what errors name.
    pub fn export(&self, image: &Image, mut output: impl Write, path: &Path) -> Result<(), ImageError> {
        let layers: Vec<Written> = image
            .manifest
            .layers
            .iter()
            .map(|layer| Written { blob: layer.blob.clone(), packing: layer.packing })
            .collect();
        // Written anew, as one of docker's has other types: its layers and configuration are the same.
        let manifest = written::manifest(&image.manifest.config, &layers);
        let digest = Digest::of(&manifest);
        let name = image.listed.reference.as_ref().map(ToString::to_string);
        let mut descriptor = json!({
            "mediaType": OCI_MANIFEST,
            "digest": digest.to_string(),
            "size": manifest.len(),
        });
        if let (Some(name), Some(descriptor)) = (&name, descriptor.as_object_mut()) {
            let annotations =
                json!({"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name});
            descriptor.insert("annotations".to_owned(), annotations);
        }
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [descriptor]});
        let blob_name = |digest: &Digest| format!("blobs/sha256/{}", digest.hex());
        let saved = json!([{
            "Config": blob_name(&image.manifest.config.digest),
            "RepoTags": name.iter().collect::<Vec<_>>(),
            "Layers": layers.iter().map(|layer| blob_name(&layer.blob.digest)).collect::<Vec<_>>(),
        }]);
        let mut writer = Writer::new(Output::Writer(&mut output));
        let written = (|| {
            // Whoever unpacks it makes directories that are not in it as root's, which skopeo as an ordinary user cannot.
            for name in ["blobs/", "blobs/sha256/"] {
                let directory = Member { what: What::Directory, mode: 0o755, ..member(name.as_bytes(), 0) };
                writer.member(&directory)?;
            }
            small(&mut writer, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
            small(&mut writer, "index.json", index.to_string().as_bytes())?;
            small(&mut writer, "manifest.json", saved.to_string().as_bytes())?;
            small(&mut writer, &blob_name(&digest), &manifest)
        })();
        written.map_err(to(path))?;
        let mut blobs: Vec<&Blob> = vec![&image.manifest.config];
        blobs.extend(layers.iter().map(|layer| &layer.blob));
        let mut seen = Vec::new();
        for blob in blobs {
            if seen.contains(&&blob.digest) {
                continue;
            }
            seen.push(&blob.digest);
            let file = self.open_blob(&blob.digest)?;
            let name = blob_name(&blob.digest);
            let whole = writer
                .member(&member(name.as_bytes(), blob.size))
                .and_then(|()| writer.contents(&file, blob.size))
                .map_err(to(path))?;
            if !whole {
                let found = file.metadata().map_or(0, |metadata| metadata.len());
                return Err(ImageError::Length {
                    what: format!("the blob {}", blob.digest),
                    expected: blob.size,
                    found,
                });
            }
        }
        writer.finish().map_err(to(path))
    }
}

/// Names what could not be written to.
fn to(path: &Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::Output { path, source }
}

fn member(name: &[u8], size: u64) -> Member<'_> {
    Member { name, what: What::File(size), mode: 0o644, uid: 0, gid: 0, modified: None, attributes: &[] }
}

fn small(writer: &mut Writer<'_>, name: &str, bytes: &[u8]) -> io::Result<()> {
    writer.member(&member(name.as_bytes(), bytes.len() as u64))?;
    writer.bytes(bytes)
}
