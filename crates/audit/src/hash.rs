//! SHA-256 as the chain uses it: 32 bytes, written as 64 lower-case hexadecimal digits and read as nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How many digits a hash has as text.
pub(crate) const DIGITS: usize = 64;

/// The hash of one record, which stands for all records before it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash([u8; 32]);

/// Why a text is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a hash: 64 digits out of 0-9 and a-f")]
pub struct HashError(String);

impl Hash {
    /// What stands for "nothing before": the `prev` of a sandbox's first record.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// What has been fed into `hasher`, hashed.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// The digits.
    pub(crate) fn digits(self) -> [u8; DIGITS] {
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        digits
    }

    /// Reads exactly 64 digits.
    pub(crate) fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.len() != DIGITS {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Self(bytes))
    }
}

const fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

/// The value of a lower-case digit. Upper case is refused: a hash has one spelling.
const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let shown = || text.chars().take(DIGITS + 1).flat_map(char::escape_debug).collect();
        Self::from_digits(text.as_bytes()).ok_or_else(|| HashError(shown()))
    }
}

impl TryFrom<String> for Hash {
    type Error = HashError;

    fn try_from(text: String) -> Result<Self, HashError> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_hash_and_back() {
        let hash = Hash::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert_eq!(hash.digits(), text.as_bytes());
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(Hash::ZERO.to_string(), "0".repeat(64));
    }

    #[test]
    fn a_hash_has_one_spelling() {
        let text = Hash::of(b"abc").to_string();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &format!(" {}", &text[1..])]
        {
            assert!(wrong.parse::<Hash>().is_err(), "{wrong:?}");
        }
    }
}
