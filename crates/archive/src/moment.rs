//! Times of files, as they stand in extended headers: decimal seconds with a fraction, before 1970 negative.

use rustix::fs::{Stat, Timespec, Timestamps, UTIME_OMIT};

/// A point in time: seconds since 1970 and the nanoseconds after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970.
    pub seconds: i64,
    /// Below 1,000,000,000.
    pub nanoseconds: u32,
}

const SECOND: u32 = 1_000_000_000;

impl Moment {
    /// When the file was last written.
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Self { seconds: stat.st_mtime, nanoseconds: nanoseconds.min(SECOND - 1) }
    }

    /// For the kernel, which leaves the time of the last access alone.
    #[must_use]
    pub fn timestamps(self) -> Timestamps {
        Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: self.seconds, tv_nsec: self.nanoseconds.into() },
        }
    }

    /// As an extended header has it.
    pub(crate) fn decimal(self) -> String {
        match self {
            Self { seconds, nanoseconds: 0 } => seconds.to_string(),
            Self { seconds, nanoseconds } if seconds >= 0 => format!("{seconds}.{nanoseconds:09}"),
            // Counted backwards from 1970, where ours counts forwards from the second before.
            Self { seconds, nanoseconds } => format!("-{}.{:09}", -(seconds + 1), SECOND - nanoseconds),
        }
    }

    /// From an extended header; none where it is no such number or too large. Digits after the ninth are cut.
    pub(crate) fn from_decimal(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let mut parts = digits.splitn(2, |byte| *byte == b'.');
        let seconds = i64::try_from(crate::number::decimal(parts.next()?)?).ok()?;
        let nanoseconds = match parts.next() {
            Some(fraction) => nanoseconds(fraction)?,
            None => 0,
        };
        match (negative, nanoseconds) {
            (false, _) => Some(Self { seconds, nanoseconds }),
            (true, 0) => Some(Self { seconds: -seconds, nanoseconds }),
            (true, _) => Some(Self { seconds: -seconds - 1, nanoseconds: SECOND - nanoseconds }),
        }
    }
}

/// The digits after the point.
fn nanoseconds(fraction: &[u8]) -> Option<u32> {
    let mut value = 0;
    let mut place = SECOND / 10;
    for byte in fraction {
        if !byte.is_ascii_digit() {
            return None;
        }
        value += u32::from(byte - b'0') * place;
        place /= 10;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read() {
        let moment = |seconds, nanoseconds| Some(Moment { seconds, nanoseconds });
        assert_eq!(Moment::from_decimal(b"1"), moment(1, 0));
        assert_eq!(Moment::from_decimal(b"1."), moment(1, 0));
        assert_eq!(Moment::from_decimal(b"1.5"), moment(1, 500_000_000));
        assert_eq!(Moment::from_decimal(b"1.0000000019"), moment(1, 1));
        assert_eq!(Moment::from_decimal(b"-0.25"), moment(-1, 750_000_000));
        for wrong in [&b""[..], b"-", b".5", b"1.5.5", b"1e9", b" 1", b"--1", b"99999999999999999999", b"1.x"]
        {
            assert_eq!(Moment::from_decimal(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn decimals_come_back(seconds in -i64::MAX..i64::MAX, nanoseconds in 0..SECOND) {
            let moment = Moment { seconds, nanoseconds };
            prop_assert_eq!(Moment::from_decimal(moment.decimal().as_bytes()), Some(moment));
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Moment::from_decimal(&text);
        }
    }
}
