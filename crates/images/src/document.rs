//! Manifests, indices and configurations: what strangers say of an image, read within limits into values that cannot be
//! wrong any more. Only this module knows the types of `oci-spec`.

use oci_spec::image::{Arch, Descriptor, ImageConfiguration, ImageIndex, ImageManifest, MediaType, Os};

use crate::digest::Digest;
use crate::error::ImageError;

/// No manifest or index is larger.
pub(crate) const LARGEST_MANIFEST: u64 = 4 << 20;
/// No configuration is larger.
pub(crate) const LARGEST_CONFIG: u64 = 8 << 20;
/// As many layers as docker makes, and more than an overlay of the kernel's has names for in one page.
pub(crate) const MOST_LAYERS: usize = 128;
/// As much as a type is shown of.
const SHOWN: usize = 80;
/// As many platforms as are looked at.
const MOST_PLATFORMS: usize = 512;

pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// Something that is found by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// What it is called.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

/// How a layer is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As it is.
    Plain,
    /// By gzip.
    Gzip,
    /// By zstd.
    Zstd,
}

/// A layer as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerBlob {
    /// Where it is.
    pub blob: Blob,
    /// How it is packed.
    pub packing: Packing,
}

/// A manifest: a configuration and layers, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The configuration.
    pub config: Blob,
    /// The layers.
    pub layers: Vec<LayerBlob>,
}

/// What a document that a name leads to is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// An image.
    Manifest(Manifest),
    /// The image's manifest for this machine.
    Chosen(Blob),
}

/// The configuration of an image, as far as it matters for running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// What is always run.
    pub entrypoint: Vec<String>,
    /// What is run, or given to that, unless told otherwise.
    pub command: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// Where it starts.
    pub workdir: Option<String>,
    /// Who it runs as: a name or number, and perhaps a group.
    pub user: Option<String>,
    /// Ports that it serves.
    pub ports: Vec<String>,
}

/// A configuration that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What it is for, as `os/architecture`.
    pub platform: String,
    /// When it was made, as it says itself.
    pub created: Option<String>,
    /// The digests of the unpacked layers, the lowest first.
    pub layers: Vec<Digest>,
    /// How to run it.
    pub settings: Settings,
}

/// What this machine runs.
#[must_use]
pub fn platform() -> String {
    format!("linux/{}", Arch::default())
}

/// Reads a manifest or an index of them; of an index, the manifest for this machine.
pub fn read_document(bytes: &[u8], kind: Option<&str>) -> Result<Document, ImageError> {
    let what = "the manifest";
    let broken = |source| ImageError::Document { what: what.to_owned(), source };
    #[derive(serde::Deserialize)]
    struct Any {
        #[serde(rename = "mediaType")]
        media_type: Option<String>,
        manifests: Option<serde::de::IgnoredAny>,
    }
    let any: Any = serde_json::from_slice(bytes).map_err(broken)?;
    // What it says of itself counts, and that a registry may say something else of it has been a hole before.
    let said = any.media_type.as_deref().or(kind);
    let is_index = match said {
        Some(OCI_INDEX | DOCKER_INDEX) => true,
        Some(OCI_MANIFEST | DOCKER_MANIFEST) => false,
        None => any.manifests.is_some(),
        Some(other) => return Err(unknown("the manifest", other)),
    };
    if !is_index {
        return manifest(bytes).map(Document::Manifest);
    }
    let index = ImageIndex::from_reader(bytes).map_err(|error| oci(what, error))?;
    let (wanted_os, wanted_arch) = (Os::Linux, Arch::default());
    let mut had = Vec::new();
    for descriptor in index.manifests().iter().take(MOST_PLATFORMS) {
        let Some(platform) = descriptor.platform() else { continue };
        if *platform.os() == wanted_os && *platform.architecture() == wanted_arch {
            return blob(descriptor).map(Document::Chosen);
        }
        had.push(shown(&format!("{}/{}", platform.os(), platform.architecture())));
    }
    // One that says nothing of machines holds one image, and its configuration will say.
    match index.manifests().as_slice() {
        [only] if only.platform().is_none() => blob(only).map(Document::Chosen),
        _ => Err(ImageError::Platform { wanted: platform(), had }),
    }
}

/// What a document says that it is.
pub(crate) fn media_type(bytes: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Said {
        #[serde(rename = "mediaType")]
        media_type: String,
    }
    serde_json::from_slice::<Said>(bytes).ok().map(|said| said.media_type)
}

fn manifest(bytes: &[u8]) -> Result<Manifest, ImageError> {
    let what = "the manifest";
    let manifest = ImageManifest::from_reader(bytes).map_err(|error| oci(what, error))?;
    if manifest.layers().len() > MOST_LAYERS {
        return Err(ImageError::Refused { what: what.to_owned(), why: "it has more than 128 layers" });
    }
    let layers = manifest.layers().iter().map(layer).collect::<Result<_, _>>()?;
    Ok(Manifest { config: blob(manifest.config())?, layers })
}

fn layer(descriptor: &Descriptor) -> Result<LayerBlob, ImageError> {
    let packing = match descriptor.media_type() {
        MediaType::ImageLayer | MediaType::ImageLayerNonDistributable => Packing::Plain,
        MediaType::ImageLayerGzip | MediaType::ImageLayerNonDistributableGzip => Packing::Gzip,
        MediaType::ImageLayerZstd | MediaType::ImageLayerNonDistributableZstd => Packing::Zstd,
        MediaType::Other(other) => match other.as_str() {
            "application/vnd.docker.image.rootfs.diff.tar" => Packing::Plain,
            "application/vnd.docker.image.rootfs.diff.tar.gzip"
            | "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" => Packing::Gzip,
            "application/vnd.docker.image.rootfs.diff.tar.zstd" => Packing::Zstd,
            other => return Err(unknown("a layer", other)),
        },
        other => return Err(unknown("a layer", other.as_ref())),
    };
    Ok(LayerBlob { blob: blob(descriptor)?, packing })
}

fn blob(descriptor: &Descriptor) -> Result<Blob, ImageError> {
    let digest = descriptor.digest().to_string().parse::<Digest>().map_err(|_| ImageError::Refused {
        what: "the manifest".to_owned(),
        why: "it names something by another digest than SHA-256",
    })?;
    Ok(Blob { digest, size: descriptor.size() })
}

/// Reads a configuration, which must be for this machine and of as many layers as the manifest has.
pub fn read_config(bytes: &[u8], layers: usize) -> Result<Config, ImageError> {
    let what = "the configuration of the image";
    let config = ImageConfiguration::from_reader(bytes).map_err(|error| oci(what, error))?;
    let found = shown(&format!("{}/{}", config.os(), config.architecture()));
    if *config.os() != Os::Linux || *config.architecture() != Arch::default() {
        return Err(ImageError::Platform { wanted: platform(), had: vec![found] });
    }
    let refused = |why| ImageError::Refused { what: what.to_owned(), why };
    let digests = config.rootfs().diff_ids();
    if digests.len() != layers {
        return Err(refused("it has another number of layers than the manifest"));
    }
    let digests = digests.iter().map(|digest| digest.parse::<Digest>());
    let layers = digests.collect::<Result<_, _>>().map_err(|_| refused("it names a layer by no digest"))?;
    let run = config.config().as_ref();
    let list = |of: Option<&Vec<String>>| of.cloned().unwrap_or_default();
    let text = |of: Option<&String>| of.filter(|text| !text.is_empty()).cloned();
    let settings = Settings {
        entrypoint: list(run.and_then(|run| run.entrypoint().as_ref())),
        command: list(run.and_then(|run| run.cmd().as_ref())),
        environment: list(run.and_then(|run| run.env().as_ref())),
        workdir: text(run.and_then(|run| run.working_dir().as_ref())),
        user: text(run.and_then(|run| run.user().as_ref())),
        ports: list(run.and_then(|run| run.exposed_ports().as_ref())),
    };
    let texts = [&settings.entrypoint, &settings.command, &settings.environment];
    let single = settings.workdir.iter().chain(&settings.user);
    if texts.into_iter().flatten().chain(single).any(|text| text.contains('\0')) {
        return Err(refused("there is a NUL in it"));
    }
    Ok(Config {
        platform: found,
        created: config.created().as_ref().map(|text| shown(text)),
        layers,
        settings,
    })
}

fn oci(what: &str, error: oci_spec::OciSpecError) -> ImageError {
    match error {
        oci_spec::OciSpecError::SerDe(source) => ImageError::Document { what: what.to_owned(), source },
        _ => ImageError::Refused { what: what.to_owned(), why: "it is not what the specification says" },
    }
}

fn unknown(what: &'static str, kind: &str) -> ImageError {
    ImageError::MediaType { what, kind: shown(kind) }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests;
