//! Many cycles in a row, then a count of what is left: processes, mounts, cgroups, namespaces and files.

use std::time::Duration;

use anyhow::Result;

use crate::Effort;
use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::remains::Remains;

/// How long what has ended may take to go.
pub(crate) const SETTLING: Duration = Duration::from_secs(5);

pub(crate) fn measure(effort: Effort) -> Result<Line> {
    let contender = Contender::agentbox()?;
    contender.cycle()?;
    // The kernel takes network namespaces apart in its own time: those of earlier measurements would hide ours.
    std::thread::sleep(SETTLING);
    let before = Remains::count()?;
    for _ in 0..effort.endurance {
        contender.cycle()?;
    }
    std::thread::sleep(SETTLING);
    let grown = Remains::count()?.since(&before);
    Ok(Line {
        what: format!("left after {} cycles, root", effort.endurance),
        measured: grown.shown(),
        value: Some(grown.sum() as f64),
        goal: Some(Bound::AtMost(0.0)),
        floor: Some(Bound::AtMost(0.0)),
    })
}
