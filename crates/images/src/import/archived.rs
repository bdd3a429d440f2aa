//! Archives that hold images: OCI archives, and what `docker save` and `skopeo copy docker-archive:` write.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use archive::{Content, Entries, Limits, Name, UnpackError};

use super::{Found, LARGEST_BLOB, Saved, archive, index, small};
use crate::decode::Decoded;
use crate::digest::Digest;
use crate::document::Blob;
use crate::error::{ImageError, at};
use crate::pieces::Pieces;
use crate::store::Store;

/// The bounds of an archive of images.
const LIMITS: Limits = Limits { bytes: LARGEST_BLOB, entries: 100_000, name_length: 4095, depth: 16 };

/// What a file in an archive is to an image.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// A blob by its digest.
    Blob(Digest),
    /// `index.json`.
    Index,
    /// `oci-layout`.
    Layout,
    /// `manifest.json`.
    Saved,
    /// A layer or configuration by another name.
    Named,
    /// What is in such archives besides.
    Other,
}

impl Part {
    /// None where no archive of an image has such a name.
    fn of(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(match name {
            "index.json" => Self::Index,
            "oci-layout" => Self::Layout,
            "manifest.json" => Self::Saved,
            "" | "repositories" | "blobs" | "blobs/sha256" => Self::Other,
            name => {
                if let Some(hex) = name.strip_prefix("blobs/sha256/") {
                    return format!("sha256:{hex}").parse().ok().map(Self::Blob);
                }
                let (first, rest) = name.split_once('/').unwrap_or((name, ""));
                let stem = first.strip_suffix(".tar").or_else(|| first.strip_suffix(".json"));
                match (first, rest) {
                    (_, "") if stem.is_some_and(is_hex) => Self::Named,
                    (id, "layer.tar") if is_hex(id) => Self::Named,
                    (id, "" | "json" | "VERSION") if is_hex(id) => Self::Other,
                    _ => return None,
                }
            }
        })
    }
}

/// Whether an archive holds images and is no root file system: it has their files and no others.
pub(super) fn is_image(file: File, path: &Path) -> Result<bool, ImageError> {
    let input = Decoded::open(file).map_err(at(path))?;
    let mut entries = Entries::of(input, &crate::unpack::LIMITS);
    while let Some(entry) = entries.next().map_err(archive(path))? {
        match Part::of(entry.name.as_bytes()) {
            None => return Ok(false),
            Some(Part::Layout | Part::Saved | Part::Index) => return Ok(true),
            Some(_) => {}
        }
        if let Content::File(size) = entry.content {
            entries.contents(size, |_| Ok(())).map_err(archive(path))?;
        }
    }
    Ok(false)
}

/// What was found in an archive.
#[derive(Default)]
struct Contents {
    index: Option<Vec<u8>>,
    saved: Option<Vec<u8>>,
    /// What names stand for.
    named: HashMap<Vec<u8>, Blob>,
    /// Names that are links to others.
    links: HashMap<Vec<u8>, Vec<u8>>,
}

impl Contents {
    fn blob_of(&self, name: &str) -> Option<Blob> {
        let name = self.links.get(name.as_bytes()).map_or(name.as_bytes(), Vec::as_slice);
        self.named.get(name).cloned()
    }
}

impl Store {
    pub(super) fn read_archived(&self, path: &Path) -> Result<Vec<Found>, ImageError> {
        let contents = self.read_archive(path)?;
        if let Some(index) = &contents.index {
            return self.find_in_index(&index::read(index)?);
        }
        let broken = |source| ImageError::Document { what: "manifest.json".to_owned(), source };
        let saved = contents.saved.as_deref().unwrap_or(b"[]");
        let saved: Vec<Saved> = serde_json::from_slice(saved).map_err(broken)?;
        saved.iter().map(|saved| self.find_saved(saved, |name| contents.blob_of(name))).collect()
    }

    fn read_archive(&self, path: &Path) -> Result<Contents, ImageError> {
        let input = File::open(path).and_then(Decoded::open).map_err(at(path))?;
        let mut entries = Entries::of(input, &LIMITS);
        let mut contents = Contents::default();
        while let Some(entry) = entries.next().map_err(archive(path))? {
            let part = Part::of(entry.name.as_bytes());
            let size = match entry.content {
                Content::File(size) => size,
                Content::SymbolicLink(target) if part == Some(Part::Named) => {
                    contents.links.insert(entry.name.as_bytes().to_vec(), beside(&target));
                    continue;
                }
                _ => continue,
            };
            let name = entry.name.as_bytes().to_vec();
            match part {
                Some(Part::Blob(digest)) => {
                    let blob = Blob { digest, size };
                    stream(&mut entries, size, path, |input| self.take_in_known(input, &blob))?;
                    contents.named.insert(name, blob);
                }
                Some(Part::Named) => {
                    let blob = stream(&mut entries, size, path, |input| self.take_in(input, LARGEST_BLOB))?;
                    contents.named.insert(name, blob);
                }
                Some(part @ (Part::Index | Part::Saved)) => {
                    let mut bytes = Vec::new();
                    let read =
                        entries.contents(size, |piece| small(&mut bytes, piece).map_err(UnpackError::Input));
                    read.map_err(archive(path))?;
                    let place = if part == Part::Index { &mut contents.index } else { &mut contents.saved };
                    *place = Some(bytes);
                }
                _ => entries.contents(size, |_| Ok(())).map_err(archive(path))?,
            }
        }
        Ok(contents)
    }
}

/// Docker writes a layer that is there already as `../ID/layer.tar`.
fn beside(target: &[u8]) -> Vec<u8> {
    let target = target.strip_prefix(b"../").unwrap_or(target);
    Name::parse(target, &LIMITS).map(|name| name.as_bytes().to_vec()).unwrap_or_default()
}

/// Hands the contents of an entry to another thread as a stream.
fn stream<T: Send, R: io::Read>(
    entries: &mut Entries<'_, R>,
    size: u64,
    path: &Path,
    take: impl FnOnce(Pieces) -> Result<T, ImageError> + Send,
) -> Result<T, ImageError> {
    let (sender, pieces) = Pieces::new();
    std::thread::scope(|scope| {
        let taker = scope.spawn(move || take(pieces));
        // A taker that has gone says why itself; the rest is passed over.
        let read = entries.contents(size, |piece| {
            let _ = sender.send(Ok(piece.to_vec()));
            Ok(())
        });
        drop(sender);
        let taken =
            taker.join().map_err(|_| at(path)(io::Error::other("the thread that stores it was lost")))?;
        read.map_err(archive(path))?;
        taken
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_images_are_told_from_those_of_systems() {
        let hex = Digest::of(b"").hex().to_owned();
        assert_eq!(Part::of(b"index.json"), Some(Part::Index));
        assert_eq!(Part::of(format!("blobs/sha256/{hex}").as_bytes()), Some(Part::Blob(Digest::of(b""))));
        assert_eq!(Part::of(format!("{hex}/layer.tar").as_bytes()), Some(Part::Named));
        assert_eq!(Part::of(format!("{hex}.json").as_bytes()), Some(Part::Named));
        for name in [&b"bin"[..], b"etc/passwd", b"blobs/sha256/x", b"x/layer.tar", b"blobs/sha256/../x"] {
            assert_eq!(Part::of(name), None, "{}", name.escape_ascii());
        }
        assert_eq!(beside(b"../a/layer.tar"), b"a/layer.tar");
        assert_eq!(beside(b"../../etc/passwd"), b"");
    }
}
