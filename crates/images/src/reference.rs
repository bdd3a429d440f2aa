//! The names that images go by, as docker and OCI registries have them: registry, repository, tag, digest. Read
//! strictly and kept in one form, so that two spellings of one image are one, and no name is ever a path.

mod registry;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, DigestError};

use registry::{LONGEST_REGISTRY, is_host_like, is_registry};
pub(crate) use registry::{host_of, is_loopback};

/// Where a name without a registry is looked for, as docker does.
const DEFAULT_REGISTRY: &str = "docker.io";
/// What it puts before a name of one part there.
const DEFAULT_NAMESPACE: &str = "library";
const DEFAULT_TAG: &str = "latest";

const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;

/// A name of an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Why a text is no name of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// The host before the first slash.
    #[error("its registry is no host name with an optional port")]
    Registry,
    /// The parts between slashes.
    #[error("its repository is not of small letters and digits, with '.', '_', '__' or '-' between them")]
    Repository,
    /// What comes after the colon.
    #[error("its tag is not of letters, digits, '_', '.' and '-', at most {LONGEST_TAG}")]
    Tag,
    /// What comes after the `@`.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// Longer than any registry takes.
    #[error("it is too long")]
    TooLong,
}

impl Reference {
    /// The host, and a port where there is one.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path on the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; none where only a digest is named.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, where one is named.
    #[must_use]
    pub const fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// What a registry is asked for: what is named most exactly.
    #[must_use]
    pub fn asked(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_else(|| DEFAULT_TAG.to_owned()),
        }
    }

    /// As people write it: without what goes without saying.
    #[must_use]
    pub fn familiar(&self) -> String {
        let whole = self.to_string();
        let short = whole.strip_prefix(DEFAULT_REGISTRY).and_then(|rest| rest.strip_prefix('/'));
        let short = short.unwrap_or(&whole);
        let namespace = short.strip_prefix(DEFAULT_NAMESPACE).and_then(|rest| rest.strip_prefix('/'));
        let namespace = namespace.filter(|rest| !rest.contains('/'));
        // Where a shorter form would be read as something else, it is not one.
        let means_this = |text: &&str| text.parse::<Self>().as_ref() == Ok(self);
        namespace.into_iter().chain([short]).find(means_this).unwrap_or(&whole).to_owned()
    }

    /// Whether the registry is this machine itself, over which nobody else listens.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(host_of(&self.registry))
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if text.len() > LONGEST_REGISTRY + LONGEST_REPOSITORY + LONGEST_TAG + 100 {
            return Err(ReferenceError::TooLong);
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        // A colon after the last slash is before a tag; one before is before a port.
        let (name, tag) = match name.rsplit_once(':') {
            Some((before, tag)) if !tag.contains('/') => (before, Some(tag)),
            _ => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ReferenceError::Tag);
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if is_host_like(first) => (first.to_ascii_lowercase(), rest.to_owned()),
            Some(_) => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
            None => (DEFAULT_REGISTRY.to_owned(), format!("{DEFAULT_NAMESPACE}/{name}")),
        };
        let registry = if registry == "index.docker.io" { DEFAULT_REGISTRY.to_owned() } else { registry };
        let repository = match (registry.as_str(), repository.contains('/')) {
            (DEFAULT_REGISTRY, false) => format!("{DEFAULT_NAMESPACE}/{repository}"),
            _ => repository,
        };
        // A host that only its capitals make one would be read as a part of another name the next time.
        if !is_registry(&registry) || !is_host_like(&registry) {
            return Err(ReferenceError::Registry);
        }
        if repository.len() > LONGEST_REPOSITORY {
            return Err(ReferenceError::TooLong);
        }
        if !repository.split('/').all(is_component) {
            return Err(ReferenceError::Repository);
        }
        let tag = match (tag, &digest) {
            (None, None) => Some(DEFAULT_TAG.to_owned()),
            (tag, _) => tag.map(str::to_owned),
        };
        Ok(Self { registry, repository, tag, digest })
    }
}

impl TryFrom<String> for Reference {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}

/// Small letters and digits with one separator between them: `.`, `_`, `__`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let mut separators = text.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    ends.iter().all(|end| end.is_some_and(|byte| is_plain(*byte)))
        && separators.all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_TAG).contains(&text.len())
        && is_word(text.as_bytes()[0])
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        text.parse::<Reference>().map_or_else(|error| error.to_string(), |found| found.to_string())
    }

    #[test]
    fn names_have_one_form() {
        for (text, form, familiar) in [
            ("debian", "docker.io/library/debian:latest", "debian:latest"),
            ("debian:12", "docker.io/library/debian:12", "debian:12"),
            ("index.docker.io/debian", "docker.io/library/debian:latest", "debian:latest"),
            ("me/tool:v1.0", "docker.io/me/tool:v1.0", "me/tool:v1.0"),
            ("ghcr.io/a/b/c", "ghcr.io/a/b/c:latest", "ghcr.io/a/b/c:latest"),
            ("localhost/x", "localhost/x:latest", "localhost/x:latest"),
            (
                "localhost:5000/x_y__z--w.v",
                "localhost:5000/x_y__z--w.v:latest",
                "localhost:5000/x_y__z--w.v:latest",
            ),
            ("[::1]:5000/x:y", "[::1]:5000/x:y", "[::1]:5000/x:y"),
            ("GHCR.io/x/y", "ghcr.io/x/y:latest", "ghcr.io/x/y:latest"),
        ] {
            assert_eq!(canonical(text), form);
            assert_eq!(text.parse::<Reference>().unwrap().familiar(), familiar);
        }
        let digest = format!("debian@{}", Digest::of(b""));
        assert_eq!(canonical(&digest), format!("docker.io/library/{digest}"));
        assert_eq!(digest.parse::<Reference>().unwrap().asked(), Digest::of(b"").to_string());
    }

    #[test]
    fn hostile_names_are_refused() {
        for text in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "../etc/passwd",
            "a/../b",
            "a:..",
            "a:",
            "a@",
            "a@sha256:1",
            "A/b/../c",
            "Upper",
            "Team/app",
            "a b",
            "a\nb",
            "a\0b",
            "host.com:0/a",
            "host.com:99999/a",
            "host.com:+1/a",
            "-host.com/a",
            "h..com/a",
            "[::1/a",
            "[nope]:5000/a",
            "user@host.com/a",
            "http://host.com/a",
            "a:b:c",
            "host.com/a?b",
            "a___b",
            "a.-b",
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text:?} is {}", canonical(text));
        }
        assert!("a".repeat(300).parse::<Reference>().is_err());
        assert!(format!("a:{}", "t".repeat(129)).parse::<Reference>().is_err());
    }

    #[test]
    fn loopback_is_told() {
        for (text, is) in [
            ("localhost:5000/a", true),
            ("127.0.0.1:5000/a", true),
            ("127.9.9.9/a", true),
            ("[::1]:5000/a", true),
            ("localhost.evil.com/a", false),
            ("10.0.0.1:5000/a", false),
            ("debian", false),
            ("127.0.0.1.nip.io/a", false),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().is_loopback(), is, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_again_as_the_same(text in "[a-z0-9.:/@_\\[\\]-]{1,40}") {
            if let Ok(found) = text.parse::<Reference>() {
                prop_assert_eq!(found.to_string().parse::<Reference>(), Ok(found.clone()));
                prop_assert_eq!(found.familiar().parse::<Reference>(), Ok(found));
            }
        }
    }
}
