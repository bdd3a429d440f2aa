//! The store of images below the state directory: blobs by digest as they came, layers by digest as directories, and a
//! list of names. It is an OCI layout with the unpacked layers beside.
//!
//! Whatever has its name is whole: everything is made under another name, checked, and renamed. A process that is killed
//! leaves at most something without a name, which the next one that needs it goes on with and `gc` removes.

mod blobs;
mod collect;
mod index;
mod layers;

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::digest::Digest;
use crate::document::{self, Config, Document, LARGEST_CONFIG, LARGEST_MANIFEST, Manifest};
use crate::error::{ImageError, at};
use crate::hands::Hands;
use crate::progress::Progress;
use crate::reference::Reference;

pub(crate) use blobs::Incoming;
pub use collect::{Collected, Used};
pub use index::Listed;
pub use layers::HeldLayers;

/// What an OCI layout is known by.
const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// How much of what can be read once is read at a time.
const SPOOLED_AT_ONCE: usize = 1 << 20;

/// The store of one caller.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// An image that is in the store.
#[derive(Clone, Debug)]
pub struct Image {
    /// What the list says of it.
    pub listed: Listed,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its configuration.
    pub config: Config,
}

impl Image {
    /// How many bytes came for it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.manifest.config.size + self.manifest.layers.iter().map(|layer| layer.blob.size).sum::<u64>()
    }
}

/// What could be read once, as a file that has no name of its own: nothing is left of it, whoever is killed.
#[derive(Debug)]
pub(crate) struct Spooled {
    file: File,
    /// How many bytes came.
    pub(crate) size: u64,
}

impl Spooled {
    /// By what it is opened, as often as is needed.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// While it is held, nothing is collected.
#[derive(Debug)]
pub struct Bringing {
    _lock: File,
}

impl Store {
    /// Opens the store in a directory, which is made where it is not there.
    pub fn open(root: &Path) -> Result<Self, ImageError> {
        let store = Self { root: root.to_owned() };
        let directories = ["", "blobs", "blobs/sha256", "layers", "locks"];
        for directory in directories.map(|name| root.join(name)) {
            match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(at(&directory)(error));
                }
                _ => {}
            }
        }
        let layout = root.join("oci-layout");
        if !layout.exists() {
            std::fs::write(&layout, LAYOUT).map_err(at(&layout))?;
        }
        Ok(store)
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.root
    }

    /// Takes what can be read once, and is called so, into a file that is read like any other.
    pub(crate) fn spool_in(
        &self,
        input: impl io::Read,
        named: &Path,
        most: u64,
    ) -> Result<Spooled, ImageError> {
        let mut spooled = Spooled { file: self.spool()?, size: 0 };
        let mut input = input.take(most + 1);
        let mut buffer = vec![0; SPOOLED_AT_ONCE];
        loop {
            let count = match input.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count.map_err(at(named))?,
            };
            let kept = spooled.file.write_all(&buffer[..count]);
            kept.map_err(|source| ImageError::Spool { path: named.to_owned(), source })?;
            spooled.size += count as u64;
        }
        if spooled.size > most {
            return Err(ImageError::TooLarge { what: "the archive".to_owned(), most });
        }
        Ok(spooled)
    }

    /// Where a system is made before it is taken in; what a killed process leaves there is collected.
    #[must_use]
    pub fn workshop(&self) -> PathBuf {
        self.root.join(format!("{}{}.tar", collect::LEFT, std::process::id()))
    }

    /// Says that an image is on its way, so that nothing of it is taken for rubbish.
    pub fn bringing(&self) -> Result<Bringing, ImageError> {
        Ok(Bringing { _lock: self.lock("bringing", FlockOperation::LockShared)? })
    }

    fn lock(&self, name: &str, how: FlockOperation) -> Result<File, ImageError> {
        let path = self.root.join("locks").join(name);
        let locked = File::options().create(true).append(true).open(&path).and_then(|file| {
            flock(&file, how)?;
            Ok(file)
        });
        locked.map_err(at(&path))
    }

    /// Reads the image of a manifest whose blobs are here.
    pub fn image(&self, listed: Listed) -> Result<Image, ImageError> {
        let bytes = self.read_blob(&listed.manifest.digest, LARGEST_MANIFEST)?;
        let manifest = match document::read_document(&bytes, Some(&listed.media_type))? {
            Document::Manifest(manifest) => manifest,
            Document::Chosen(_) => {
                let what = format!("the manifest {}", listed.manifest.digest);
                return Err(ImageError::Refused { what, why: "it is an index" });
            }
        };
        let config = self.read_blob(&manifest.config.digest, LARGEST_CONFIG)?;
        let config = document::read_config(&config, manifest.layers.len())?;
        Ok(Image { listed, manifest, config })
    }

    /// Finds an image by its name, or by the beginning of its digest.
    pub fn find(&self, text: &str) -> Result<Image, ImageError> {
        self.image(self.find_listed(text)?)
    }

    /// The same, whether it can be read or not.
    pub fn find_listed(&self, text: &str) -> Result<Listed, ImageError> {
        let list = self.list()?;
        let wanted = text.parse::<Reference>();
        let by_name = wanted.as_ref().ok().and_then(|wanted| {
            list.iter().find(|listed| {
                let is_wanted = listed.reference.as_ref() == Some(wanted);
                // A name with a digest is that image, whatever else it is called.
                is_wanted || wanted.digest() == Some(&listed.manifest.digest)
            })
        });
        if let Some(found) = by_name {
            return Ok(found.clone());
        }
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let is_beginning = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut found: Vec<&Listed> = list
            .iter()
            .filter(|listed| is_beginning && listed.manifest.digest.hex().starts_with(digits))
            .collect();
        found.dedup_by(|one, other| one.manifest.digest == other.manifest.digest);
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => match wanted {
                Err(source) if !is_beginning => Err(ImageError::Reference { text: text.to_owned(), source }),
                _ => Err(ImageError::Unknown(text.escape_debug().to_string())),
            },
            several => {
                let of = several.iter().map(|listed| listed.manifest.digest.short().to_owned()).collect();
                Err(ImageError::Ambiguous { text: text.to_owned(), of })
            }
        }
    }

    /// Takes an image in whose blobs are here: unpacks what is not unpacked, and lists it.
    pub fn admit(
        &self,
        reference: Option<Reference>,
        (manifest, media_type): (&Digest, &str),
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<Image, ImageError> {
        let size = self.blob_size(manifest)?;
        let listed = Listed::new(reference, manifest.clone(), size, media_type);
        let image = self.image(listed)?;
        self.unpack_layers(&image, hands, progress)?;
        self.enlist(&image.listed)?;
        Ok(image)
    }
}
