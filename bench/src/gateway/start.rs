//! What a network adds to a full cycle of /bin/true: the same cycle with a way out and without one, in turn.

use std::time::Duration;

use anyhow::Result;

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::succeed;
use crate::statistics::median_milliseconds;

const WITHOUT: &[&str] = &["run", "--", "/bin/true"];
const WITH: &[&str] = &["run", "--allow", "site.test", "--", "/bin/true"];

const PAUSE: Duration = Duration::from_millis(150);

pub(crate) fn measure_start(who: &str, effort: Effort) -> Result<Vec<Line>> {
    [("cold", PAUSE), ("back to back", Duration::ZERO)]
        .into_iter()
        .map(|(name, pause)| line(&format!("{who}, {name}"), effort.cycles, pause))
        .collect()
}

fn line(who: &str, cycles: usize, pause: Duration) -> Result<Line> {
    let mut times = [Vec::new(), Vec::new()];
    // The first cycle of each only warms up.
    for cycle in 0..=cycles {
        for (words, times) in [WITHOUT, WITH].into_iter().zip(&mut times) {
            std::thread::sleep(pause);
            let time = succeed(&mut Caller::default().agentbox(words)?)?;
            times.extend((cycle > 0).then_some(time));
        }
    }
    let [without, with] = times.map(|times| median_milliseconds(&times));
    Ok(Line {
        what: format!("full cycle, {who}, network included (ms more)"),
        measured: vec![
            ("with a network".to_owned(), format!("{with:.2} ms")),
            ("without".to_owned(), format!("{without:.2} ms")),
        ],
        value: Some(with - without),
        goal: Some(Bound::AtMost(0.5)),
        floor: Some(Bound::AtMost(1.0)),
    })
}
