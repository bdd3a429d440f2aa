//! Images from registries. Whatever a registry sends is compared with the digest that it was asked for by while it
//! arrives, nothing is taken that is larger than announced, and what has come stays for the next try.
//!
//! The client is ours, over `ureq`: it goes on with half a blob, keeps to one host's secrets and to TLS, and blocks, as
//! everything here does.

mod certificates;
mod challenge;
mod client;
mod connection;
mod credentials;
mod fetch;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod token;

use std::path::PathBuf;

use crate::beside::beside;
use crate::digest::Digest;
use crate::document::{self, Blob, Document, LARGEST_CONFIG, LARGEST_MANIFEST};
use crate::error::ImageError;
use crate::hands::Hands;
use crate::import::LARGEST_BLOB;
use crate::progress::{Progress, Step};
use crate::reference::Reference;
use crate::store::{Image, Store};
use client::Client;

pub(crate) use connection::obstacle;

/// As many layers as are on their way or being unpacked at once.
const AT_ONCE: usize = 4;

/// Where and how an image is asked for.
#[derive(Clone, Debug)]
pub struct Pull<'a> {
    /// Which.
    pub reference: &'a Reference,
    /// Whether to speak without TLS to a registry that is not this machine.
    pub transport: Transport,
    /// Files of passwords, the first that knows the registry counts.
    pub credentials: Vec<PathBuf>,
    /// Directories with certificates for registries.
    pub certificates: Vec<PathBuf>,
}

/// Whether it may be spoken where others listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By TLS, except with this machine itself.
    Secure,
    /// In plain, as the owner says.
    Plain,
}

/// Where docker and podman leave passwords.
#[must_use]
pub fn credential_files() -> Vec<PathBuf> {
    credentials::files()
}

/// Where docker and podman look for certificates of single registries.
#[must_use]
pub fn certificate_directories() -> Vec<PathBuf> {
    certificates::directories()
}

impl Store {
    /// Brings an image, with what of it is not here yet.
    pub fn pull(
        &self,
        pull: &Pull<'_>,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<Image, ImageError> {
        let _bringing = self.bringing()?;
        let client = Client::new(pull)?;
        let (manifest, media_type) = self.pull_manifest(&client, pull.reference)?;
        let bytes = self.read_blob(&manifest.digest, LARGEST_MANIFEST)?;
        let Document::Manifest(found) = document::read_document(&bytes, Some(&media_type))? else {
            return Err(ImageError::Refused {
                what: "the index".to_owned(),
                why: "it leads to another index",
            });
        };
        let too_large = |blob: &Blob, most| {
            let what = format!("the blob {}", blob.digest);
            if blob.size > most { Err(ImageError::TooLarge { what, most }) } else { Ok(()) }
        };
        too_large(&found.config, LARGEST_CONFIG)?;
        found.layers.iter().try_for_each(|layer| too_large(&layer.blob, LARGEST_BLOB))?;
        // The configuration first: what is not for this machine is not brought.
        if !self.has_sound_blob(&found.config) {
            client.blob(self, &found.config, progress)?;
        }
        let config = self.read_blob(&found.config.digest, LARGEST_CONFIG)?;
        let config = document::read_config(&config, found.layers.len())?;
        let layers: Vec<(&Blob, &Digest)> =
            found.layers.iter().map(|layer| &layer.blob).zip(&config.layers).collect();
        for (blob, _) in &layers {
            let is_here = self.has_blob(&blob.digest);
            let (bytes, of) = (if is_here { blob.size } else { 0 }, blob.size);
            progress(Step::Received { blob: blob.digest.clone(), bytes, of });
        }
        // Whoever has brought a layer unpacks it, while others are still on their way.
        beside(&layers, AT_ONCE, |(blob, layer)| {
            client.blob(self, blob, progress)?;
            self.unpack_layer(&blob.digest, layer, hands, progress)
        })?;
        // A name with a digest is kept under both.
        self.admit(Some(pull.reference.clone()), (&manifest.digest, &media_type), hands, progress)
    }

    /// The manifest for this machine, which is here then.
    fn pull_manifest(&self, client: &Client, reference: &Reference) -> Result<(Blob, String), ImageError> {
        let (bytes, media_type) = client.manifest(&reference.asked(), reference.digest())?;
        let blob = match document::read_document(&bytes, media_type.as_deref())? {
            Document::Manifest(_) => None,
            Document::Chosen(blob) => Some(blob),
        };
        let (bytes, media_type) = match blob {
            None => (bytes, media_type),
            Some(blob) => client.manifest(&blob.digest.to_string(), Some(&blob.digest))?,
        };
        let media_type = document::media_type(&bytes).or(media_type);
        let blob = self.take_in(bytes.as_slice(), LARGEST_MANIFEST)?;
        Ok((blob, media_type.unwrap_or_else(|| document::OCI_MANIFEST.to_owned())))
    }
}
