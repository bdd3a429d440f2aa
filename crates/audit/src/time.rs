//! When something happened: `2026-11-16T03:04:05.678Z`, always UTC, always with milliseconds. One spelling only, so
//! that records sort as text, and total: a clock that stands before 1970 or after 9999 gives the nearest time there is.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The last millisecond of the year 9999, beyond which the spelling would change.
const LAST: u64 = 253_402_300_799_999;
const MILLIS_PER_DAY: u64 = 86_400_000;

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(u64);

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time such as 2026-11-16T03:04:05.678Z")]
pub struct TimeError(String);

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(LAST).min(LAST))
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        UNIX_EPOCH + Duration::from_millis(time.0)
    }
}

/// Year, month and day of a day counted from 1970-01-01: the civil calendar in eras of 400 years that begin in March,
/// which puts the leap day last.
const fn date(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as u64;
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// The other way round; nonsense in gives another day out, which the caller notices.
const fn day(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).saturating_sub(719_469)
}

/// Writes `value` into all of `place`, with zeros before it.
fn put(place: &mut [u8], mut value: u64) {
    for byte in place.iter_mut().rev() {
        *byte = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

impl Time {
    /// The time as text. By hand: the machinery of `write!` would cost more than the rest of a record.
    pub(crate) fn characters(self) -> [u8; 24] {
        let (day, milli) = (self.0 / MILLIS_PER_DAY, self.0 % MILLIS_PER_DAY);
        let (year, month, day) = date(day);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], milli / 3_600_000);
        put(&mut text[14..16], milli / 60_000 % 60);
        put(&mut text[17..19], milli / 1000 % 60);
        put(&mut text[20..23], milli % 1000);
        text
    }

    fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != 24 {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<u64> {
            text[from..to].iter().try_fold(0, |number, byte| {
                byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
            })
        };
        let (year, month, day_of_month) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day_of_month) {
            return None;
        }
        let clock = number(11, 13)? * 3_600_000 + number(14, 16)? * 60_000 + number(17, 19)? * 1000;
        let time = Self(day(year, month, day_of_month) * MILLIS_PER_DAY + clock + number(20, 23)?);
        // What does not come out as it went in was no date, no hour or had other signs between its numbers.
        (time.characters() == text).then_some(time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.characters().iter().try_for_each(|byte| fmt::Write::write_char(formatter, char::from(*byte)))
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let shown = || text.chars().take(32).flat_map(char::escape_debug).collect();
        Self::parse(text.as_bytes()).ok_or_else(|| TimeError(shown()))
    }
}

impl TryFrom<String> for Time {
    type Error = TimeError;

    fn try_from(text: String) -> Result<Self, TimeError> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_798_245_678, "2026-11-16T03:04:05.678Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Time(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(Time(millis)));
        }
    }

    #[test]
    fn a_clock_that_is_far_off_is_no_panic() {
        assert_eq!(Time::from(UNIX_EPOCH - Duration::from_secs(5)), Time(0));
        assert_eq!(Time::from(UNIX_EPOCH + Duration::from_secs(u64::MAX / 4)), Time(LAST));
    }

    #[test]
    fn a_time_has_one_spelling() {
        for wrong in [
            "",
            "2026-11-16T03:04:05Z",
            "2026-11-16 03:04:05.678Z",
            "2026-11-16T03:04:05.678+",
            "2026-02-29T03:04:05.678Z",
            "2026-13-16T03:04:05.678Z",
            "2026-00-16T03:04:05.678Z",
            "0000-01-01T00:00:00.000Z",
            "2026-11-16T24:00:00.000Z",
            "2026-11-16T03:04:60.678Z",
            "2026-11-16T03:04:05.67\u{e9}",
        ] {
            assert!(wrong.parse::<Time>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(millis in 0..=LAST) {
            prop_assert_eq!(Time(millis).to_string().parse(), Ok(Time(millis)));
        }
    }
}
