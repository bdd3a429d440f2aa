//! A layer as a directory. The layer is an enemy's: its names are checked by the archive's reader, everything is made
//! beneath one directory without following a link, no device comes to be, and it ends where its limits do.
//!
//! Each layer is unpacked once and by itself, and an overlay puts them together. What a layer takes away from those
//! below is a device 0/0, and a directory that hides theirs bears an attribute: both can be made by an ordinary user
//! since Linux 5.8 (5.11 for overlays that read them), so that no merged copy of each image has to be kept. The
//! attribute is in the `user.` space, the only one that an overlay of a user namespace looks at.

mod tree;
mod whiteout;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use archive::{Content, Entries, Entry, Limits, UnpackError};
use failpoint::Point;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::decode::Decoded;
use crate::digest::Digest;
pub(crate) use tree::OPAQUE;
use tree::Tree;
use whiteout::Whiteout;

/// The bounds of one layer.
pub const LIMITS: Limits = Limits { bytes: 64 << 30, entries: 1_000_000, name_length: 4095, depth: 128 };

/// Highest id that is anybody's inside.
const LAST_ID: u64 = 65534;

/// Whom files belong to once they are unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owners {
    /// Whom the layer says, as the unpacking process counts.
    Kept,
    /// Whoever unpacks, as there is nobody else.
    Dropped,
}

/// What was unpacked, and what was left out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Devices, pipes and sockets that were left out.
    pub devices: u64,
    /// Files whose capabilities were left out.
    pub capabilities: u64,
    /// Other attributes that were left out.
    pub attributes: u64,
    /// Files whose owner could not be kept.
    pub owners: u64,
}

/// Why a layer cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Its archive is wrong, or the kernel refused.
    #[error(transparent)]
    Archive(#[from] UnpackError),
    /// It could not be read.
    #[error("cannot read it")]
    Input(#[source] io::Error),
    /// Its directory.
    #[error("cannot use the directory for it")]
    Directory(#[source] io::Error),
    /// It is another one.
    #[error("unpacked, it has the digest {found}")]
    Mismatch {
        /// Its digest.
        found: Digest,
    },
    /// A whiteout that takes nothing away.
    #[error("'{}' takes away what has no name", .0.escape_ascii())]
    Whiteout(Vec<u8>),
}

/// Unpacks the layer in a file into a directory that is there and empty. It may still be on its way to the disk then.
pub fn unpack(blob: File, directory: &Path, layer: &Digest, owners: Owners) -> Result<Unpacked, LayerError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root: OwnedFd = rustix::fs::open(directory, flags, Mode::empty())
        .map_err(|errno| LayerError::Directory(errno.into()))?;
    let mut input = Decoded::open(blob).map_err(LayerError::Input)?;
    let mut entries = Entries::of(&mut input, &LIMITS);
    let mut tree = Tree::new(root.as_fd(), owners);
    let mut unpacked = Unpacked::default();
    while let Some(entry) = entries.next()? {
        if unpacked.entries == 0 {
            failpoint::pass(Point::ImageLayerBegun);
        }
        place(&mut entries, &mut tree, entry, &mut unpacked)?;
    }
    tree.settle()?;
    drop(entries);
    let found = input.finish().map_err(LayerError::Input)?;
    if found != *layer {
        return Err(LayerError::Mismatch { found });
    }
    Ok(unpacked)
}

fn place<R: io::Read>(
    entries: &mut Entries<'_, R>,
    tree: &mut Tree<'_>,
    mut entry: Entry,
    unpacked: &mut Unpacked,
) -> Result<(), LayerError> {
    match Whiteout::of(&entry.name)? {
        Some(whiteout) => {
            if let Content::File(size) = entry.content {
                entries.contents(size, |_| Ok::<(), UnpackError>(()))?;
            }
            return Ok(tree.take_away(&entry.name, whiteout)?);
        }
        None => unpacked.entries += 1,
    }
    sift(&mut entry, unpacked);
    match &entry.content {
        Content::Special(_) => {
            unpacked.entries -= 1;
            unpacked.devices += 1;
            return Ok(());
        }
        Content::Directory => tree.directory(&entry)?,
        Content::SymbolicLink(target) => tree.symbolic_link(&entry, target)?,
        Content::HardLink(target) => tree.hard_link(&entry.name, target)?,
        Content::File(size) => {
            let file = tree.file(&entry)?;
            entries.contents(*size, |piece| write(&file, piece, &entry))?;
            tree.finish_file(&file, &entry)?;
            unpacked.bytes += size;
        }
    }
    Ok(())
}

/// Leaves out what must not come to be: an owner whom nobody is, and attributes that the kernel acts by.
fn sift(entry: &mut Entry, unpacked: &mut Unpacked) {
    if entry.name.is_root() {
        // Whoever puts the layers together has to see what is at their top.
        entry.mode |= 0o755;
    }
    if entry.uid > LAST_ID || entry.gid > LAST_ID {
        unpacked.owners += 1;
        entry.uid = entry.uid.min(LAST_ID);
        entry.gid = entry.gid.min(LAST_ID);
    }
    entry.attributes.retain(|(name, _)| {
        let is_kept = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.") && !name.contains(&0);
        if !is_kept {
            let counted = if name == b"security.capability" {
                &mut unpacked.capabilities
            } else {
                &mut unpacked.attributes
            };
            *counted += 1;
        }
        is_kept
    });
}

fn write(file: &OwnedFd, mut piece: &[u8], entry: &Entry) -> Result<(), UnpackError> {
    while !piece.is_empty() {
        match rustix::io::write(file, piece) {
            Ok(count) => piece = &piece[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(tree::system(archive::Action::Write, &entry.name)(errno)),
        }
    }
    Ok(())
}
