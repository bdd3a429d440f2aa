//! What can go wrong with an image. What came from a registry or an archive stands in a message only where it has been
//! read into a type of ours.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::reference::ReferenceError;

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
    #[error("{what} is of the type '{}', which is not known here", kind.escape_debug())]
    MediaType {
        /// What it is the type of.
        what: &'static str,
        /// The type, cut where it is too long to show.
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
    },
}

/// Causes as another process told them, the outermost first.
#[derive(Debug)]
pub struct Said {
    text: String,
    cause: Option<Box<Said>>,
}

impl Said {
    /// The first of them, if any.
    #[must_use]
    pub fn chain(causes: &[String]) -> Option<Self> {
        let (text, rest) = causes.split_first()?;
        Some(Self { text: text.clone(), cause: Self::chain(rest).map(Box::new) })
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Said {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl ImageError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Reference { .. } => {
                "write it as [REGISTRY/]NAME[:TAG][@DIGEST], as in debian:12".to_owned()
            }
            Self::Unknown(name) => {
                format!("`agentbox image ls` shows what is here; `agentbox image pull {name}` brings it")
            }
            Self::Ambiguous { .. } => "write more of it".to_owned(),
            Self::Mismatch { .. } | Self::Length { .. } => {
                "it was damaged or changed on its way; nothing of it was kept, try again".to_owned()
            }
            Self::PlainTokens { .. } => {
                "a password would go where others listen; the registry has to name an address with https://"
                    .to_owned()
            }
            Self::Certificate { registry, .. } => format!(
                "put the certificate of its authority into /etc/docker/certs.d/{registry}/ca.crt, or name a file of \
                 certificates in SSL_CERT_FILE"
            ),
            Self::Registry { status, login, registry, .. }
                if status.starts_with("401") || status.starts_with("403") =>
            {
                match login {
                    Some(source) => format!(
                        "it does not take what {source} has for it: log in again with `docker login {registry}` or `podman \
                         login {registry}`"
                    ),
                    None => format!(
                        "log in with `docker login {registry}` or `podman login {registry}`, which leave the password where \
                         agentbox finds it; or there is no such image"
                    ),
                }
            }
            Self::Registry { status, .. } if status.starts_with("429") => {
                "it has been asked too often; wait, or log in with `docker login` or `podman login`"
                    .to_owned()
            }
            Self::Helper { helper, source } if source.kind() == io::ErrorKind::NotFound => format!(
                "docker's configuration names it: install `docker-credential-{helper}`, or take it out there"
            ),
            Self::NoBootstrap => "install it (Debian: `apt install mmdebstrap`)".to_owned(),
            Self::OneId => "run it as root, or get a range of ids: `agentbox doctor` tells how".to_owned(),
            Self::InUse { .. } => "remove those with `agentbox rm` first".to_owned(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room, and try again: what has come already is kept".to_owned()
            }
            _ => return None,
        })
    }
}

/// Names the file that something went wrong with.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::File { path, source }
}
