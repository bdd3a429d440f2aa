//! Medians: the one number that a busy neighbour does not move much.

use std::time::Duration;

/// The middle of the measurements, in milliseconds.
pub(crate) fn median_milliseconds(times: &[Duration]) -> f64 {
    percentile_milliseconds(times, 50)
}

/// The time that so many percent of the measurements stay within, in milliseconds.
pub(crate) fn percentile_milliseconds(times: &[Duration], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}
