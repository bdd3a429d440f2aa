//! Time limits as people write them: `90`, `10s`, `5m`, `1h 30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long something may take: from one millisecond to a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timeout {
    milliseconds: u64,
}

/// Why a text is not a time limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a time limit: seconds or a number with ms, s, m, h or d, from 1ms to 365d, such as 90 or 5m"
)]
pub struct TimeoutError(String);

const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Timeout {
    /// The limit as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }

    /// The limit in milliseconds.
    #[must_use]
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }
}

impl FromStr for Timeout {
    type Err = TimeoutError;

    fn from_str(text: &str) -> Result<Self, TimeoutError> {
        let malformed = || TimeoutError(text.escape_debug().to_string());
        let plain_seconds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let duration = if plain_seconds {
            Duration::from_secs(text.parse().map_err(|_| malformed())?)
        } else {
            humantime::parse_duration(text).map_err(|_| malformed())?
        };
        if duration > LONGEST || duration < Duration::from_millis(1) {
            return Err(malformed());
        }
        Ok(Self { milliseconds: u64::try_from(duration.as_millis()).map_err(|_| malformed())? })
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.duration()).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, milliseconds) in [("90", 90_000), ("250ms", 250), ("5m", 300_000), ("1h 30m", 5_400_000)] {
            assert_eq!(text.parse::<Timeout>().map(Timeout::milliseconds), Ok(milliseconds), "{text}");
        }
        for text in ["", "0", "-1", "soon", "5x", "366d", "99999999999999999999"] {
            assert!(text.parse::<Timeout>().is_err(), "{text:?}");
        }
    }
}
