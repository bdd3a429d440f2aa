//! The `index.json` of an archive or layout: which manifests it holds.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::digest::Digest;
use crate::document::Blob;
use crate::error::ImageError;
use crate::reference::Reference;

/// Where programs write what an image is called.
const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

/// A manifest or another index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    pub(super) media_type: String,
    digest: Digest,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Line {
    pub(super) fn blob(&self) -> Blob {
        Blob { digest: self.digest.clone(), size: self.size }
    }

    /// What it is called. A bare tag is no name of an image, although many write one there.
    pub(super) fn name(&self) -> Option<Reference> {
        let names = NAMES.iter().filter_map(|name| self.annotations.get(*name));
        names.filter(|name| name.contains([':', '/'])).find_map(|name| name.parse().ok())
    }
}

/// What an index holds.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Line>, ImageError> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Vec<Line>,
    }
    let broken = |source| ImageError::Document { what: "index.json".to_owned(), source };
    serde_json::from_slice::<Index>(bytes).map(|index| index.manifests).map_err(broken)
}
