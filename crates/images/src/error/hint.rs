//! What a person can do about a failure with an image.

use std::io;
use std::path::Path;

use super::ImageError;
use crate::pull::obstacle;

impl ImageError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Reference { .. } => {
                "write it as [REGISTRY/]NAME[:TAG][@DIGEST], as in debian:12".to_owned()
            }
            // By the digest of an image that is not here nobody finds it.
            Self::Unknown(name) if name.starts_with("sha256:") => {
                "`agentbox image ls` shows what is here".to_owned()
            }
            Self::Unknown(name) => {
                format!("`agentbox image ls` shows what is here; `agentbox image pull {name}` brings it")
            }
            Self::Nameless { path } => {
                format!("name it: `agentbox image import {} my/image:1`", quoted(path))
            }
            Self::Packed { path, program } => format!(
                "unpack it on its way: `{program} -dc {} | agentbox image import - my/image:1`",
                quoted(path)
            ),
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
            Self::Registry { status, registry, .. } if status.starts_with("404") => {
                format!("{registry} has no such image, or no such tag of it: look at how it is written")
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
            Self::Unreachable { registry, source } => return obstacle(&**source).hint(registry),
            Self::MediaType { .. } => {
                "images of layers that are tars, plain or by gzip or zstd, are taken; registries hold other things as well, \
                 as charts and signatures, which are no root file systems"
                    .to_owned()
            }
            Self::Platform { wanted, .. } => {
                format!("choose a tag that is for {wanted}, or have it built for that")
            }
            Self::Output { .. } if is_full(self) => {
                "make room there, and try again: what was there before is as it was".to_owned()
            }
            Self::Spool { .. } if is_full(self) => {
                "make room for it beside the images, or import a file, which is not copied first".to_owned()
            }
            Self::InUse { .. } => "remove those with `agentbox rm` first".to_owned(),
            Self::Worker { hint, .. } => return hint.clone(),
            _ if is_full(self) => "make room, and try again: what has come already is kept".to_owned(),
            _ => return None,
        })
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%,=".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Whether what is at the bottom of it is a disk without room.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_this =
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
            || error.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOSPC);
    is_this || error.source().is_some_and(is_full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_can_be_typed_as_it_is() {
        let hint = |path: &str| ImageError::Nameless { path: path.into() }.hint().unwrap_or_default();
        assert_eq!(hint("rootfs.tar"), "name it: `agentbox image import rootfs.tar my/image:1`");
        assert_eq!(hint("it's one"), r"name it: `agentbox image import 'it'\''s one' my/image:1`");
        let unknown = |name: &str| ImageError::Unknown(name.to_owned()).hint().unwrap_or_default();
        assert!(unknown("debian:12").contains("image pull debian:12"));
        assert!(!unknown("sha256:123456").contains("pull"));
    }
}
