//! Who a sandbox is: its id (made by us) and its name (chosen by the owner). Both become file names on the
//! host, so neither can hold a separator, a dot at the front or anything a terminal would act on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A sandbox's id: twelve characters of a small alphabet without look-alikes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// A name that the owner gives to a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

/// Why a text is neither an id nor a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// An id of another length or with another character.
    #[error("'{0}' is not a sandbox id: twelve characters out of 0-9 and a-z without i, l, o, u")]
    Id(String),
    /// A name that could not stand as a file name or in a log.
    #[error("'{0}' is not a name: 1 to 63 of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit")]
    Name(String),
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_LENGTH: usize = 12;

impl SandboxId {
    /// Turns random bytes, five bits of each, into an id.
    #[must_use]
    pub fn from_random(bytes: [u8; ID_LENGTH]) -> Self {
        Self(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SandboxId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let valid = text.len() == ID_LENGTH && text.bytes().all(|byte| ALPHABET.contains(&byte));
        if valid { Ok(Self(text.to_owned())) } else { Err(IdError::Id(text.escape_debug().to_string())) }
    }
}

impl SandboxName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SandboxName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let first =
            text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let rest = text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        });
        let valid = first && rest && text.len() <= 63;
        if valid { Ok(Self(text.to_owned())) } else { Err(IdError::Name(text.escape_debug().to_string())) }
    }
}

macro_rules! text_value {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }
        impl TryFrom<String> for $type {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.0
            }
        }
    };
}

text_value!(SandboxId);
text_value!(SandboxName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_parse_back() {
        let id = SandboxId::from_random([0, 1, 31, 32, 255, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(id.as_str().parse::<SandboxId>(), Ok(id.clone()));
    }

    #[test]
    fn an_id_is_never_a_path() {
        for text in ["", "../../../../..", "0123456789a/", "0123456789ABC", "0123456789\0a", "il0123456789"] {
            assert!(text.parse::<SandboxId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_hold_no_tricks() {
        for text in ["web", "a", "my-box_2.1", "0"] {
            assert!(text.parse::<SandboxName>().is_ok(), "{text:?}");
        }
        for text in ["", ".", "..", "-rf", "a/b", "A", "a b", "\u{1b}[2J", "a\0", &"x".repeat(64)] {
            assert!(text.parse::<SandboxName>().is_err(), "{text:?}");
        }
    }
}
