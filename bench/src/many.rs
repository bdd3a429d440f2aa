//! Very many sandboxes that idle: that all of them are held, what each of them takes, and how long `ls` takes then.

use std::process::Stdio;
use std::time::Instant;

use anyhow::Result;

use crate::goal::{Bound, Line};
use crate::idle;
use crate::place::Place;
use crate::sandbox::{Sandbox, succeed};
use crate::statistics::median_milliseconds;
use crate::{Effort, remains};

const LISTS: usize = 15;

pub(crate) fn measure(who: &str, place: &Place, effort: Effort) -> Result<[Line; 2]> {
    // What else runs on the machine is none of theirs.
    let others = idle::sums_by_role()?;
    let begun = Instant::now();
    let mut sandboxes = Vec::new();
    for _ in 0..effort.idle {
        sandboxes.push(Sandbox::create(place.caller())?);
    }
    let made = begun.elapsed().as_secs_f64();
    let sums = idle::sums_by_role()?;
    let each = |role: &str| {
        let [all, others] = [&sums, &others].map(|sums| sums.get(role).copied().unwrap_or_default());
        all.saturating_sub(others) as f64 / effort.idle as f64 / 1024.0
    };
    let charged = remains::memory_of_cgroups(&sandboxes);
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        lists.push(succeed(&mut place.caller().agentbox(&["ls"])?)?);
    }
    let listed = place.caller().agentbox(&["ls", "--quiet"])?.stdin(Stdio::null()).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let held = sandboxes.iter().filter(|sandbox| listed.lines().any(|id| id == sandbox.id)).count();
    // The oldest still does what it is told, and so does the newest.
    for sandbox in [sandboxes.first(), sandboxes.last()].into_iter().flatten() {
        succeed(&mut sandbox.exec()?)?;
    }
    drop(sandboxes);
    let mut measured: Vec<(String, String)> = ["keeper", "supervisor", "init"]
        .map(|role| (format!("{role} PSS"), format!("{:.2} MiB", each(role))))
        .into();
    if let Some(bytes) = charged {
        let each = bytes as f64 / effort.idle as f64 / 1024.0 / 1024.0;
        measured.push(("charged to a cgroup".to_owned(), format!("{each:.2} MiB")));
    }
    measured.push(("made in".to_owned(), format!("{made:.1} s")));
    let holding = Line {
        what: format!("{} idle sandboxes, held, {who}", effort.idle),
        measured,
        value: Some(held as f64),
        goal: Some(Bound::AtLeast(effort.idle as f64)),
        floor: Some(Bound::AtLeast(effort.idle as f64)),
    };
    let time = median_milliseconds(&lists);
    let listing = Line {
        what: format!("ls of {} sandboxes, {who} (ms)", effort.idle),
        measured: vec![("agentbox".to_owned(), format!("{time:.1} ms"))],
        value: Some(time),
        goal: Some(Bound::AtMost(50.0)),
        floor: Some(Bound::AtMost(100.0)),
    };
    Ok([holding, listing])
}
