//! OCI layouts made by hand, right and wrong.

use std::fs;
use std::path::Path;

use images::Digest;
use serde_json::{Value, json};

pub(crate) const PLAIN: &str = "application/vnd.oci.image.layer.v1.tar";

/// A layout: layers, the lowest first, and how they are run.
#[derive(Clone, Default)]
pub(crate) struct Layout {
    pub(crate) layers: Vec<Vec<u8>>,
    pub(crate) config: Option<Value>,
    pub(crate) media_type: Option<String>,
    pub(crate) architecture: Option<String>,
    /// The digests of the unpacked layers, where they are not those of these.
    pub(crate) unpacked: Option<Vec<Digest>>,
}

impl Layout {
    pub(crate) fn of(layers: &[Vec<u8>]) -> Self {
        Self { layers: layers.to_vec(), ..Self::default() }
    }

    /// Writes it; gives the digests of its layers.
    pub(crate) fn write(&self, path: &Path) -> Vec<Digest> {
        let blobs = path.join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        let put = |bytes: &[u8], kind: &str| {
            let digest = Digest::of(bytes);
            fs::write(blobs.join(digest.hex()), bytes).unwrap();
            json!({"mediaType": kind, "digest": digest.to_string(), "size": bytes.len()})
        };
        let kind = self.media_type.as_deref().unwrap_or(PLAIN);
        let digests: Vec<Digest> = self.layers.iter().map(|layer| Digest::of(layer)).collect();
        let unpacked = self.unpacked.as_ref().unwrap_or(&digests);
        let config = json!({
            "os": "linux",
            "architecture": self.architecture.as_deref().unwrap_or(architecture()),
            "config": self.config.clone().unwrap_or_else(|| json!({})),
            "rootfs": {
                "type": "layers",
                "diff_ids": unpacked.iter().map(ToString::to_string).collect::<Vec<_>>(),
            },
        });
        let layers: Vec<Value> = self.layers.iter().map(|layer| put(layer, kind)).collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": put(config.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json"),
            "layers": layers,
        });
        let manifest = put(manifest.to_string().as_bytes(), "application/vnd.oci.image.manifest.v1+json");
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        fs::write(path.join("index.json"), index.to_string()).unwrap();
        fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        digests
    }
}

pub(crate) fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}
