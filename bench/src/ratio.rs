//! What was measured of agentbox and its peers, in lines: one beside each bubblewrap, the one that everybody has and the
//! one that was given the same ids.

use std::time::Duration;

use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::statistics::median_milliseconds;

/// The first contender is agentbox; `places` is how many of a median are shown.
pub(crate) fn lines(
    what: &str,
    contenders: &[Contender],
    times: &[Vec<Duration>],
    places: usize,
    (goal, floor): (f64, f64),
) -> Vec<Line> {
    let medians: Vec<f64> = times.iter().map(|times| median_milliseconds(times)).collect();
    let measured: Vec<(String, String)> = contenders
        .iter()
        .zip(&medians)
        .map(|(contender, median)| (contender.name.to_owned(), format!("{median:.places$} ms")))
        .collect();
    let peers = contenders.iter().zip(&medians).filter(|(contender, _)| contender.name.starts_with("bwrap"));
    peers
        .map(|(peer, median)| Line {
            what: format!("{what} (× {})", peer.name),
            measured: measured.clone(),
            value: Some(medians[0] / median),
            goal: Some(Bound::AtMost(goal)),
            floor: Some(Bound::AtMost(floor)),
        })
        .collect()
}
