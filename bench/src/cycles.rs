//! Full cycles of /bin/true: started, run, ended, nothing left. Each round takes every contender once, so that
//! whatever the machine does meets all of them; cold with a pause in between, and back to back.

use std::time::Duration;

use anyhow::Result;

use crate::contender::{Contender, for_cycles};
use crate::goal::Line;
use crate::{Effort, ratio};

const PAUSE: Duration = Duration::from_millis(150);

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let bundles = std::env::temp_dir().join("bundles");
    let contenders = for_cycles(&bundles)?;
    let mut lines = Vec::new();
    for (name, pause) in [("cold", PAUSE), ("back to back", Duration::ZERO)] {
        lines.extend(round(&format!("full cycle, {who}, {name}"), &contenders, effort, pause)?);
    }
    if bundles.exists() {
        std::fs::remove_dir_all(&bundles)?;
    }
    Ok(lines)
}

fn round(what: &str, contenders: &[Contender], effort: Effort, pause: Duration) -> Result<Vec<Line>> {
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..effort.cycles {
        for (contender, times) in contenders.iter().zip(&mut times) {
            std::thread::sleep(pause);
            times.push(contender.cycle()?);
        }
    }
    let bounds = if what.contains("root") { (1.2, 2.0) } else { (1.0, 1.5) };
    Ok(ratio::lines(what, contenders, &times, 2, bounds))
}
