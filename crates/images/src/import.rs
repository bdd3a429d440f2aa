//! Images that come as files: an OCI layout or archive, what `docker save` writes, or a root file system as a tar or a
//! directory. What an archive holds is an enemy's: names are compared with those that an image has, blobs are taken in by
//! their digests, and everything else is passed over.

mod archived;
mod index;
mod layout;
mod rootfs;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use serde::Deserialize;

use crate::decode;
use crate::digest::Digest;
use crate::document::{self, Blob, Document, LARGEST_CONFIG, LARGEST_MANIFEST, MOST_LAYERS, OCI_MANIFEST};
use crate::error::{ImageError, at};
use crate::hands::Hands;
use crate::progress::Progress;
use crate::reference::Reference;
use crate::store::{Image, Store};
use crate::unpack::Owners;
use crate::written::{self, Written};
use index::Line;

/// The largest blob of an archive.
pub(crate) const LARGEST_BLOB: u64 = 64 << 30;
/// The most images of one archive.
const MOST_IMAGES: usize = 64;

/// What is to be taken in.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// Where it is.
    pub from: Source<'a>,
    /// What it shall be called; as it calls itself, where nothing is said.
    pub reference: Option<&'a Reference>,
    /// Whom files of a directory belong to in the image: whoever they belong to here, or root.
    pub owners: Owners,
}

/// Where something to take in is.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// An archive, a tar or a directory; or a pipe, through which one of the first two comes.
    Path(&'a Path),
    /// What is open already, and what errors call it.
    Open(&'a File, &'a Path),
}

/// What stands in the `manifest.json` of an archive of docker's.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// A manifest that was found, and the name that came with it.
#[derive(Debug)]
struct Found {
    manifest: Blob,
    media_type: String,
    names: Vec<Reference>,
}

impl Store {
    /// Takes in what is there.
    pub fn import(
        &self,
        import: &Import<'_>,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<Vec<Image>, ImageError> {
        let _bringing = self.bringing()?;
        let (input, named) = match import.from {
            Source::Path(path) => {
                let metadata = fs::metadata(path).map_err(at(path))?;
                if metadata.is_dir() || metadata.is_file() {
                    return self.import_from(path, import, hands, progress);
                }
                // What a device has to say may have no end.
                if !metadata.file_type().is_fifo() {
                    let why = "it is neither a file nor a directory nor a pipe";
                    return Err(ImageError::NoImage { path: path.to_owned(), why });
                }
                (&File::open(path).map_err(at(path))?, path)
            }
            Source::Open(file, named) => (file, named),
        };
        // It is looked at more than once, and nobody can go back in a pipe.
        let spooled = self.spool_in(input, named, LARGEST_BLOB)?;
        // Whoever should have written it has failed, and said why.
        if spooled.size == 0 {
            return Err(ImageError::NoImage { path: named.to_owned(), why: "nothing came" });
        }
        let path = spooled.path();
        let imported = self.import_from(&path, import, hands, progress);
        imported.map_err(|error| error.renamed(&path, named))
    }

    fn import_from(
        &self,
        path: &Path,
        import: &Import<'_>,
        hands: &dyn Hands,
        progress: &Progress<'_>,
    ) -> Result<Vec<Image>, ImageError> {
        let is_directory = fs::metadata(path).map_err(at(path))?.is_dir();
        // What is no image yet has no name, and is not packed before one is given.
        let nameless = || match import.reference {
            Some(_) => Ok(()),
            None => Err(ImageError::Nameless { path: path.to_owned() }),
        };
        let found = if is_directory && path.join("oci-layout").is_file() {
            self.read_layout(path)?
        } else if is_directory {
            nameless()?;
            vec![self.pack_directory(path, import.owners)?]
        } else {
            let file = File::open(path).map_err(at(path))?;
            if let Some(program) = decode::foreign(&file).map_err(at(path))? {
                return Err(ImageError::Packed { path: path.to_owned(), program });
            }
            if archived::is_image(file, path)? {
                self.read_archived(path)?
            } else {
                nameless()?;
                vec![self.pack_rootfs(path)?]
            }
        };
        let no_image = |why| ImageError::NoImage { path: path.to_owned(), why };
        if found.is_empty() {
            return Err(no_image("it holds none for this machine"));
        }
        if found.len() > MOST_IMAGES {
            return Err(no_image("it holds too many"));
        }
        let mut images = Vec::new();
        for Found { manifest, media_type, names } in &found {
            let names = match import.reference {
                Some(_) if found.len() > 1 => {
                    return Err(no_image("it holds several, which cannot have one name"));
                }
                Some(name) => vec![name.clone()],
                None if names.is_empty() => {
                    return Err(ImageError::Nameless { path: path.to_owned() });
                }
                None => names.clone(),
            };
            for name in names {
                images.push(self.admit(Some(name), (&manifest.digest, media_type), hands, progress)?);
            }
        }
        Ok(images)
    }

    /// The manifests that an OCI index leads to, for this machine.
    fn find_in_index(&self, lines: &[Line]) -> Result<Vec<Found>, ImageError> {
        let (mut found, mut other) = (Vec::new(), None);
        for line in lines.iter().take(MOST_IMAGES) {
            match self.manifest_for_here(&line.blob().digest, &line.media_type) {
                Err(error @ ImageError::Platform { .. }) => other = Some(error),
                read => {
                    let (manifest, media_type) = read?;
                    found.push(Found { manifest, media_type, names: line.name().into_iter().collect() });
                }
            }
        }
        match other {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The manifest itself, or that for this machine out of an index.
    fn manifest_for_here(&self, digest: &Digest, media_type: &str) -> Result<(Blob, String), ImageError> {
        let bytes = self.read_blob(digest, LARGEST_MANIFEST)?;
        match document::read_document(&bytes, Some(media_type))? {
            Document::Manifest(_) => {
                let size = bytes.len() as u64;
                Ok((Blob { digest: digest.clone(), size }, media_type.to_owned()))
            }
            Document::Chosen(blob) => {
                let bytes = self.read_blob(&blob.digest, LARGEST_MANIFEST)?;
                match document::read_document(&bytes, Some(OCI_MANIFEST))? {
                    Document::Manifest(_) => Ok((blob, OCI_MANIFEST.to_owned())),
                    Document::Chosen(_) => {
                        let what = format!("the index {digest}");
                        Err(ImageError::Refused { what, why: "it leads to another index" })
                    }
                }
            }
        }
    }

    /// Writes the manifest of an archive of docker's, which has none; `blob_of` finds what a name in it stands for.
    fn find_saved(&self, saved: &Saved, blob_of: impl Fn(&str) -> Option<Blob>) -> Result<Found, ImageError> {
        let find = |name: &str| {
            let shown: String = name.chars().take(100).collect();
            blob_of(name).ok_or_else(|| ImageError::Absent(format!("'{}'", shown.escape_debug())))
        };
        if saved.layers.len() > MOST_LAYERS {
            return Err(ImageError::Refused {
                what: "the archive".to_owned(),
                why: "it has more than 128 layers",
            });
        }
        let config = find(&saved.config)?;
        self.read_blob(&config.digest, LARGEST_CONFIG)?;
        let layers = saved.layers.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
        let names = saved.repo_tags.iter().flatten().take(MOST_IMAGES);
        let names = names.filter_map(|name| name.parse().ok()).collect();
        let written = self.write_manifest(&config, &layers)?;
        Ok(Found { manifest: written, media_type: OCI_MANIFEST.to_owned(), names })
    }

    /// Writes an OCI manifest of blobs that are here.
    pub(crate) fn write_manifest(&self, config: &Blob, layers: &[Blob]) -> Result<Blob, ImageError> {
        let packed = |layer: &Blob| {
            let packing = written::packing_of(&self.open_blob(&layer.digest)?)
                .map_err(at(&self.blob_path(&layer.digest)))?;
            Ok::<_, ImageError>(Written { blob: layer.clone(), packing })
        };
        let layers = layers.iter().map(packed).collect::<Result<Vec<_>, _>>()?;
        self.take_in(written::manifest(config, &layers).as_slice(), LARGEST_MANIFEST)
    }

    /// Makes an image of one layer that is here.
    pub(crate) fn image_of_layer(
        &self,
        layer: &Blob,
        diff: &Digest,
        run: &written::Run,
    ) -> Result<Blob, ImageError> {
        let config =
            self.take_in(written::config(run, std::slice::from_ref(diff)).as_slice(), LARGEST_CONFIG)?;
        self.write_manifest(&config, std::slice::from_ref(layer))
    }
}

/// An archive's own failure.
fn archive(path: &Path) -> impl Fn(archive::UnpackError) -> ImageError + '_ {
    move |source| match source {
        archive::UnpackError::Input(source) => ImageError::File { path: path.to_owned(), source },
        source => ImageError::Archive { path: path.to_owned(), source },
    }
}

/// Reads a file of an archive or layout that is small.
fn small(bytes: &mut Vec<u8>, piece: &[u8]) -> io::Result<()> {
    if bytes.len() + piece.len() > LARGEST_MANIFEST as usize {
        return Err(io::Error::other("a document in it is too large"));
    }
    bytes.extend_from_slice(piece);
    Ok(())
}
