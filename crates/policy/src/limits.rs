//! How much of the machine a sandbox may use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Size, SizeError};

/// What one sandbox may use; the defaults are those of a developer's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, the private file systems' contents included.
    pub memory: Size,
    /// Processor time.
    pub cpus: Cpus,
    /// Processes and threads.
    pub pids: Pids,
    /// What the private writable directories hold together.
    pub disk: Size,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: Size::gibibytes(4),
            cpus: Cpus { milli: 4000 },
            pids: Pids(512),
            disk: Size::gibibytes(2),
        }
    }
}

/// The least that private directories may hold: the files of a sandbox's own /etc are among them.
pub const LEAST_DISK: Size = Size::mebibytes(1);

/// Why a text does not say what private directories may hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// Not a size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Less than a sandbox has of its own.
    #[error("{0} is less than a sandbox needs for files of its own: at least {LEAST_DISK}")]
    TooSmall(Size),
}

/// What private directories may hold, as people write it.
pub fn parse_disk(text: &str) -> Result<Size, DiskError> {
    match text.parse()? {
        size if size < LEAST_DISK => Err(DiskError::TooSmall(size)),
        size => Ok(size),
    }
}

/// Processors, in thousandths: `0.5` is half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cpus {
    milli: u32,
}

/// Why a text is not a number of processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a number of processors: from 0.01 to 4096, with at most three decimals, such as 2 or 0.5"
)]
pub struct CpusError(String);

impl Cpus {
    /// So many thousandths.
    #[must_use]
    pub const fn from_milli(milli: u32) -> Self {
        Self { milli }
    }

    /// Thousandths of a processor.
    #[must_use]
    pub const fn milli(self) -> u32 {
        self.milli
    }
}

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let malformed = || CpusError(text.escape_debug().to_string());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 3 || whole.len() > 4 {
            return Err(malformed());
        }
        let whole: u32 = whole.parse().map_err(|_| malformed())?;
        let thousandths: u32 = format!("{fraction:0<3}").parse().map_err(|_| malformed())?;
        let milli = whole * 1000 + thousandths;
        if (10..=4_096_000).contains(&milli) { Ok(Self { milli }) } else { Err(malformed()) }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.milli / 1000, self.milli % 1000);
        if rest == 0 {
            return write!(formatter, "{whole}");
        }
        let fraction = format!("{rest:03}");
        write!(formatter, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// How many processes and threads may exist at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pids(u32);

/// Why a text is not a number of processes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a number of processes: from 4 to 4194304")]
pub struct PidsError(String);

impl Pids {
    /// So many.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0
    }
}

impl FromStr for Pids {
    type Err = PidsError;

    fn from_str(text: &str) -> Result<Self, PidsError> {
        match text.parse() {
            Ok(count) if (4..=4_194_304).contains(&count) => Ok(Self(count)),
            _ => Err(PidsError(text.escape_debug().to_string())),
        }
    }
}

impl fmt::Display for Pids {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn processors() {
        for (text, milli) in [("2", 2000), ("0.5", 500), ("1.25", 1250), ("0.01", 10), ("4096", 4_096_000)] {
            assert_eq!(text.parse::<Cpus>().map(Cpus::milli), Ok(milli), "{text}");
        }
        for text in ["", "0", "0.001", "-1", "+1", "1e3", "1.2345", ".5", "5.", "4097", "NaN", "1,5"] {
            assert!(text.parse::<Cpus>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn processes() {
        assert_eq!("512".parse::<Pids>(), Ok(Pids(512)));
        for text in ["", "0", "3", "-5", "many", "99999999999"] {
            assert!(text.parse::<Pids>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn processors_display_parses_back(milli in 10u32..=4_096_000) {
            let cpus = Cpus { milli };
            prop_assert_eq!(cpus.to_string().parse::<Cpus>(), Ok(cpus));
        }
    }
}
