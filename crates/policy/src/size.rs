//! Sizes as people write them: `512M`, `4GiB`, `1.5g`, `65536`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes, greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(u64);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a number with a known unit.
    #[error("'{0}' is not a size: a number and one of B, K, M, G, T (powers of 1024), such as 512M or 4GiB")]
    Malformed(String),
    /// Nothing at all fits into zero bytes.
    #[error("a size of zero bytes limits everything away")]
    Zero,
    /// More than 64 bits, or more than any machine has.
    #[error("'{0}' is larger than any machine: at most 8 EiB")]
    TooLarge(String),
}

/// Digits beyond these would only be cut off in silence.
const MAX_FRACTION_DIGITS: usize = 6;

impl Size {
    /// A size of so many bytes; zero becomes one, as a limit of nothing has no meaning.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self(if bytes == 0 { 1 } else { bytes })
    }

    /// A size of so many MiB.
    #[must_use]
    pub const fn mebibytes(count: u64) -> Self {
        Self::bytes(count << 20)
    }

    /// A size of so many GiB.
    #[must_use]
    pub const fn gibibytes(count: u64) -> Self {
        Self::bytes(count << 30)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let malformed = || SizeError::Malformed(text.escape_debug().to_string());
        let too_large = || SizeError::TooLarge(text.escape_debug().to_string());
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(malformed()),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.len() > MAX_FRACTION_DIGITS {
            return Err(malformed());
        }
        if fraction.contains('.') || (shift == 0 && number.contains('.')) {
            return Err(malformed());
        }
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let scale = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| malformed())?);
        let fraction: u64 = fraction.parse().map_err(|_| malformed())?;
        let bytes = (u128::from(whole) << shift) + (u128::from(fraction) << shift) / scale;
        match u64::try_from(bytes) {
            Ok(0) => Err(SizeError::Zero),
            Ok(bytes) if bytes <= 1 << 63 => Ok(Self(bytes)),
            _ => Err(too_large()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(formatter, "{}{unit}", self.0 >> shift);
            }
        }
        write!(formatter, "{}B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_people_write() {
        let table = [
            ("512M", 512 << 20),
            ("4GiB", 4 << 30),
            ("4g", 4 << 30),
            ("1.5g", 3 << 29),
            ("65536", 65536),
            ("10b", 10),
            ("2kb", 2048),
        ];
        for (text, bytes) in table {
            assert_eq!(text.parse::<Size>().map(Size::as_bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for text in
            ["", "M", "-1", "1e3", "4 G", "1..5G", "1.G", ".5G", "1.5", "4X", "4G\0", "٤G", "1.0000001G"]
        {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::Malformed(_))), "{text:?}");
        }
        assert_eq!("0".parse::<Size>(), Err(SizeError::Zero));
        assert_eq!("0.0G".parse::<Size>(), Err(SizeError::Zero));
        for text in ["99999999999999999999", "16777216T"] {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::TooLarge(_))), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(bytes in 1u64..=1 << 63) {
            let size = Size::bytes(bytes);
            prop_assert_eq!(size.to_string().parse::<Size>(), Ok(size));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = text.parse::<Size>();
        }
    }
}
