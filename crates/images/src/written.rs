//! Manifests and configurations that we write ourselves.

use std::fs::File;
use std::io::{self, Read as _};

use serde_json::json;

use crate::digest::Digest;
use crate::document::{Blob, OCI_CONFIG, OCI_MANIFEST, Packing, Settings, platform};

/// A layer for a manifest of ours.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) blob: Blob,
    pub(crate) packing: Packing,
}

/// How an image of ours is run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) settings: Settings,
    pub(crate) created: Option<String>,
}

/// How a blob is packed, by its first bytes.
pub(crate) fn packing_of(mut file: &File) -> io::Result<Packing> {
    let mut start = [0; 4];
    let count = file.read(&mut start)?;
    Ok(match &start[..count] {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zstd,
        _ => Packing::Plain,
    })
}

/// The manifest of some layers, the lowest first.
pub(crate) fn manifest(config: &Blob, layers: &[Written]) -> Vec<u8> {
    let descriptor = |kind: &str, blob: &Blob| json!({"mediaType": kind, "digest": blob.digest.to_string(), "size": blob.size});
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| {
            let suffix = match layer.packing {
                Packing::Plain => "",
                Packing::Gzip => "+gzip",
                Packing::Zstd => "+zstd",
            };
            descriptor(&format!("application/vnd.oci.image.layer.v1.tar{suffix}"), &layer.blob)
        })
        .collect();
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": descriptor(OCI_CONFIG, config),
        "layers": layers,
    })
    .to_string()
    .into_bytes()
}

/// A configuration for this machine.
pub(crate) fn config(run: &Run, layers: &[Digest]) -> Vec<u8> {
    let platform = platform();
    let (os, architecture) = platform.split_once('/').unwrap_or(("linux", "amd64"));
    let Settings { entrypoint, command, environment, workdir, user, ports } = &run.settings;
    let mut settings = serde_json::Map::new();
    for (name, list) in [("Entrypoint", entrypoint), ("Cmd", command), ("Env", environment)] {
        if !list.is_empty() {
            settings.insert(name.to_owned(), json!(list));
        }
    }
    for (name, text) in [("WorkingDir", workdir), ("User", user)] {
        if let Some(text) = text {
            settings.insert(name.to_owned(), json!(text));
        }
    }
    if !ports.is_empty() {
        let ports: serde_json::Map<_, _> = ports.iter().map(|port| (port.clone(), json!({}))).collect();
        settings.insert("ExposedPorts".to_owned(), ports.into());
    }
    let layers: Vec<_> = layers.iter().map(ToString::to_string).collect();
    let mut config = json!({
        "architecture": architecture,
        "os": os,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": layers},
    });
    if let (Some(created), Some(config)) = (&run.created, config.as_object_mut()) {
        config.insert("created".to_owned(), json!(created));
    }
    config.to_string().into_bytes()
}
