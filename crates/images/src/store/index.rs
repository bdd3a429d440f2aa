//! The list of names: `index.json`, as an OCI layout has it, with the name of each image as an annotation. It is
//! replaced whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use failpoint::Point;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::{Image, Store};
use crate::digest::Digest;
use crate::document::{Blob, OCI_INDEX};
use crate::error::{ImageError, at};
use crate::reference::Reference;

const NAME: &str = "org.opencontainers.image.ref.name";
const ADDED: &str = "dev.agentbox.added";
/// No list is longer.
const LARGEST: u64 = 64 << 20;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name; none for one whose name was given to another.
    pub reference: Option<Reference>,
    /// Its manifest.
    pub manifest: Blob,
    /// What kind of manifest.
    pub media_type: String,
    /// When it came, in seconds since 1970.
    pub added: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    media_type: String,
    manifests: Vec<Descriptor>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: Digest,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Listed {
    pub(super) fn new(reference: Option<Reference>, digest: Digest, size: u64, media_type: &str) -> Self {
        let added = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { reference, manifest: Blob { digest, size }, media_type: media_type.to_owned(), added }
    }

    /// What a person calls it.
    #[must_use]
    pub fn name(&self) -> String {
        self.reference.as_ref().map_or_else(|| self.manifest.digest.short().to_owned(), Reference::familiar)
    }
}

impl From<Descriptor> for Listed {
    fn from(found: Descriptor) -> Self {
        let annotation = |name: &str| found.annotations.get(name);
        Self {
            reference: annotation(NAME).and_then(|name| name.parse().ok()),
            added: annotation(ADDED).and_then(|added| added.parse().ok()).unwrap_or(0),
            manifest: Blob { digest: found.digest, size: found.size },
            media_type: found.media_type,
        }
    }
}

impl From<&Listed> for Descriptor {
    fn from(listed: &Listed) -> Self {
        let name = listed.reference.iter().map(|name| (NAME.to_owned(), name.to_string()));
        let annotations = name.chain([(ADDED.to_owned(), listed.added.to_string())]).collect();
        let Blob { digest, size } = listed.manifest.clone();
        Self { media_type: listed.media_type.clone(), digest, size, annotations }
    }
}

impl Store {
    /// All images, in the order of their names.
    pub fn list(&self) -> Result<Vec<Listed>, ImageError> {
        let path = self.root.join("index.json");
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(at(&path))?,
        };
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|source| ImageError::Document { what: format!("'{}'", path.display()), source })?;
        let mut list: Vec<Listed> = index.manifests.into_iter().map(Listed::from).collect();
        // Those without a name come last.
        list.sort_by_key(|listed| (listed.reference.is_none(), listed.name()));
        Ok(list)
    }

    /// Lists an image. Another one of that name is listed without it while nobody has removed it.
    pub(super) fn enlist(&self, new: &Listed) -> Result<(), ImageError> {
        failpoint::pass(Point::ImageUnlisted);
        self.change(|list| {
            for listed in list.iter_mut().filter(|listed| listed.reference == new.reference) {
                listed.reference = None;
            }
            list.push(new.clone());
            // One that has a name is not listed without one as well.
            let named: Vec<Digest> = list
                .iter()
                .filter(|listed| listed.reference.is_some())
                .map(|listed| listed.manifest.digest.clone())
                .collect();
            list.retain(|listed| listed.reference.is_some() || !named.contains(&listed.manifest.digest));
            let mut nameless = Vec::new();
            list.retain(|listed| {
                let is_new = !nameless.contains(&listed.manifest.digest);
                if listed.reference.is_none() {
                    nameless.push(listed.manifest.digest.clone());
                }
                listed.reference.is_some() || is_new
            });
            Ok(())
        })?;
        failpoint::pass(Point::ImageListed);
        Ok(())
    }

    /// Gives an image another name besides.
    pub fn tag(&self, image: &Image, reference: Reference) -> Result<(), ImageError> {
        self.enlist(&Listed { reference: Some(reference), ..image.listed.clone() })
    }

    /// Takes an image off the list: its name, or all of it where it has none or is called by its digest. Its blobs and
    /// layers stay until they are collected.
    pub fn unlist(&self, image: &Listed) -> Result<(), ImageError> {
        self.change(|list| {
            list.retain(|listed| {
                let is_it = listed.manifest.digest == image.manifest.digest;
                !(is_it && listed.reference == image.reference)
            });
            Ok(())
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Listed>) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        let _lock = self.lock("index", FlockOperation::LockExclusive)?;
        let mut list = self.list()?;
        change(&mut list)?;
        let manifests = list.iter().map(Descriptor::from).collect();
        let index = Index { schema_version: 2, media_type: OCI_INDEX.to_owned(), manifests };
        let (path, new) = (self.root.join("index.json"), self.root.join(".index.json"));
        let written = (|| {
            let mut file = File::options();
            let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec(&index)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.root)?.sync_all()
        })();
        written.map_err(at(&path))
    }
}
