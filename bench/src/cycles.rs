//! Full cycles of /bin/true: started, run, ended, nothing left. Each round takes every contender once, so that
//! whatever the machine does meets all of them; cold with a pause in between, and back to back.

use std::time::Duration;

use anyhow::Result;

use crate::Effort;
use crate::contender::{Contender, for_cycles};
use crate::goal::{Bound, Line};
use crate::statistics::median_milliseconds;

const PAUSE: Duration = Duration::from_millis(150);

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let bundles = std::env::temp_dir().join("bundles");
    let contenders = for_cycles(&bundles)?;
    let lines = [("cold", PAUSE), ("back to back", Duration::ZERO)]
        .into_iter()
        .map(|(name, pause)| round(&format!("full cycle, {who}, {name}"), &contenders, effort, pause))
        .collect();
    if bundles.exists() {
        std::fs::remove_dir_all(&bundles)?;
    }
    lines
}

fn round(what: &str, contenders: &[Contender], effort: Effort, pause: Duration) -> Result<Line> {
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..effort.cycles {
        for (contender, times) in contenders.iter().zip(&mut times) {
            std::thread::sleep(pause);
            times.push(contender.cycle()?);
        }
    }
    let medians: Vec<f64> = times.iter().map(|times| median_milliseconds(times)).collect();
    let root = what.contains("root");
    Ok(Line {
        what: format!("{what} (× bwrap)"),
        measured: contenders
            .iter()
            .zip(&medians)
            .map(|(contender, median)| (contender.name.to_owned(), format!("{median:.2} ms")))
            .collect(),
        value: Some(medians[0] / medians[1]),
        goal: Some(Bound::AtMost(if root { 1.2 } else { 1.0 })),
        floor: Some(Bound::AtMost(if root { 2.0 } else { 1.5 })),
    })
}
