//! What can go wrong with an image. What came from a registry or an archive stands in a message only where it has been
//! read into a type of ours.

mod hint;

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::reference::ReferenceError;
use crate::said::Said;

/// A failure with an image or the store.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A name that is none.
    #[error("'{}' is no name of an image", text.escape_debug())]
    Reference {
        /// What was written.
        text: String,
        /// What is wrong with it.
        source: ReferenceError,
    },
    /// Nothing of that name is in the store.
    #[error("there is no image '{0}' here")]
    Unknown(String),
    /// More than one is meant.
    #[error("'{text}' is the beginning of more than one image: {}", of.join(", "))]
    Ambiguous {
        /// What was written.
        text: String,
        /// Whom it fits.
        of: Vec<String>,
    },
    /// A file or directory.
    #[error("cannot use '{}'", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The bytes are others than were asked for.
    #[error("{what} has the digest {found} and should have {expected}")]
    Mismatch {
        /// What they should have been.
        what: String,
        /// The digest by which they were asked for.
        expected: Digest,
        /// Theirs.
        found: Digest,
    },
    /// There are fewer bytes or more than were announced.
    #[error("{what} has {found} bytes and should have {expected}")]
    Length {
        /// What they should have been.
        what: String,
        /// How many there should be.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// More than is taken from anybody.
    #[error("{what} is larger than the {most} bytes that are taken")]
    TooLarge {
        /// Of what.
        what: String,
        /// How many.
        most: u64,
    },
    /// A manifest, index or configuration that is none.
    #[error("{what} cannot be understood")]
    Document {
        /// Which.
        what: String,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A document that contradicts itself or goes beyond what is taken.
    #[error("{what} is refused: {why}")]
    Refused {
        /// Which.
        what: String,
        /// Why.
        why: &'static str,
    },
    /// A kind of manifest or layer that is not known.
    #[error("{what} is of the type '{kind}', which is not known here")]
    MediaType {
        /// What it is the type of.
        what: &'static str,
        /// The type as it is shown: escaped, and cut where it is too long.
        kind: String,
    },
    /// It is for other machines.
    #[error("the image is not for {wanted}; it is for {}", had.join(", "))]
    Platform {
        /// What this machine is.
        wanted: String,
        /// What it is for.
        had: Vec<String>,
    },
    /// A layer that could not be unpacked.
    #[error("cannot unpack the layer {layer}")]
    Layer {
        /// Its digest, uncompressed.
        layer: Digest,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A blob that an archive or a layout should hold.
    #[error("{0} is not there")]
    Absent(String),
    /// It is no archive or directory that images come in.
    #[error("'{}' is no image: {why}", path.display())]
    NoImage {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A root file system, which has no name of its own.
    #[error("cannot take '{}' in: it does not say what it is called", path.display())]
    Nameless {
        /// What was given.
        path: PathBuf,
    },
    /// An archive that is packed in another way than those of images are.
    #[error("'{}' is packed by {program}, which is not read here", path.display())]
    Packed {
        /// What was given.
        path: PathBuf,
        /// By what.
        program: &'static str,
    },
    /// Where an image is written to.
    #[error("cannot write '{}'", path.display())]
    Output {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Room for what can be read once.
    #[error("cannot keep what comes by '{}'", path.display())]
    Spool {
        /// What it comes by.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// An archive that an image comes in.
    #[error("cannot read '{}'", path.display())]
    Archive {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: archive::UnpackError,
    },
    /// What a registry said.
    #[error("{registry} answers {what} with {status}")]
    Registry {
        /// Whom was asked.
        registry: String,
        /// For what.
        what: String,
        /// The status, and what it says of it, escaped and cut.
        status: String,
        /// Where what it was shown came from.
        login: Option<String>,
    },
    /// The registry shows a certificate that nobody vouches for, or another's.
    #[error("the certificate of {registry} is not trusted")]
    Certificate {
        /// Which.
        registry: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The registry could not be reached, or was lost.
    #[error("cannot reach {registry}")]
    Unreachable {
        /// Which.
        registry: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Whoever gives tokens would be asked where everybody can listen and answer.
    #[error("{registry} has its tokens from {host}, who is not asked without TLS")]
    PlainTokens {
        /// Which registry.
        registry: String,
        /// Whom it names.
        host: String,
    },
    /// A program that knows passwords.
    #[error("the credential helper '{helper}' failed")]
    Helper {
        /// Which.
        helper: String,
        /// Why.
        source: io::Error,
    },
    /// It is needed by something.
    #[error("the image '{image}' is used by {}", by.join(", "))]
    InUse {
        /// Which.
        image: String,
        /// By what.
        by: Vec<String>,
    },
    /// What makes systems from packages is not installed.
    #[error("mmdebstrap is not installed")]
    NoBootstrap,
    /// What makes systems from packages needs more ids.
    #[error("a system cannot be made from packages with one id")]
    OneId,
    /// It failed, and has said why.
    #[error("{program} failed")]
    Bootstrap {
        /// Which program.
        program: String,
        /// How it ended.
        source: io::Error,
    },
    /// A process that does something with other ids.
    #[error("{error}")]
    Worker {
        /// What it said.
        error: String,
        /// Why.
        #[source]
        source: Option<Said>,
        /// What it said to do about it.
        hint: Option<String>,
    },
}

impl ImageError {
    /// The same of another file: what was spooled is called by where it came from.
    pub(crate) fn renamed(mut self, from: &Path, to: &Path) -> Self {
        if let Self::File { path, .. }
        | Self::Archive { path, .. }
        | Self::NoImage { path, .. }
        | Self::Nameless { path }
        | Self::Packed { path, .. } = &mut self
            && path == from
        {
            to.clone_into(path);
        }
        self
    }
}

/// Names the file that something went wrong with.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::File { path, source }
}
