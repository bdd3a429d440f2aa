//! What things are called by: the SHA-256 of their bytes. A name of this kind is checked where it is read, and
//! afterwards is 64 hexadecimal digits and no path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What stands before the digits.
const ALGORITHM: &str = "sha256:";
const DIGITS: usize = 64;

/// The digest of some bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// Why a text is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no digest: `sha256:` and 64 digits of 0-9a-f")]
pub struct DigestError(String);

impl Digest {
    /// The digest of bytes that are at hand.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digits alone.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// As many of them as a person needs.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix(ALGORITHM).filter(|digits| {
            digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        let shown = || DigestError(text.chars().take(100).collect::<String>().escape_debug().to_string());
        digits.map(|digits| Self(digits.to_owned())).ok_or_else(shown)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{ALGORITHM}{}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Bytes on their way to a digest.
#[derive(Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        let mut digits = String::with_capacity(DIGITS);
        for byte in self.0.finalize() {
            digits.push_str(&format!("{byte:02x}"));
        }
        Digest(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_digest_is_the_known_one() {
        let known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), known);
        assert_eq!(known.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let digits = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let upper = format!("sha256:{}", digits.to_uppercase());
        let short = format!("sha256:{}", &digits[1..]);
        let path = format!("sha256:../../{}", &digits[6..]);
        for text in ["", "sha256:", digits, "sha512:00", &upper, &short, &path] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
