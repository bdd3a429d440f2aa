//! Many sandboxes made, used and removed beside one that stays and is used as often: nothing of those that are gone may
//! be left, and the one that stays may not grow. Records outlive sandboxes and are shown only.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::idle::proportional_kibibytes;
use crate::leaks::SETTLING;
use crate::place::Place;
use crate::remains::{Remains, count_below};
use crate::sandbox::{Sandbox, succeed};

/// A supervisor knows so many processes that are over, and grows until it does; and as many more.
const WARMING: usize = 512;

pub(crate) fn measure(place: &Place, effort: Effort) -> Result<Line> {
    let staying = Sandbox::create(place.caller())?;
    for _ in 0..WARMING {
        succeed(&mut staying.exec()?)?;
    }
    turn_over(place, &staying)?;
    std::thread::sleep(SETTLING);
    let before = Count::now(place, &staying)?;
    for _ in 0..effort.turnover {
        turn_over(place, &staying)?;
    }
    std::thread::sleep(SETTLING);
    let after = Count::now(place, &staying)?;
    // Pages come and go; what leaks makes a whole MiB of them sooner or later.
    let more = after.kibibytes - before.kibibytes;
    let grown = after.remains.since(&before.remains).and("MiB", more / 1024);
    let mut measured = grown.shown();
    measured.push(("KiB".to_owned(), format!("{more:+}")));
    measured.push(("on record".to_owned(), format!("{:+}", after.records - before.records)));
    Ok(Line {
        what: format!("left after {} sandboxes made, used and removed, root", effort.turnover),
        measured,
        value: Some(grown.sum() as f64),
        goal: Some(Bound::AtMost(0.0)),
        floor: Some(Bound::AtMost(0.0)),
    })
}

fn turn_over(place: &Place, staying: &Sandbox) -> Result<()> {
    let sandbox = Sandbox::create(place.caller())?;
    succeed(&mut sandbox.exec()?)?;
    succeed(&mut staying.exec()?)?;
    sandbox.remove()
}

struct Count {
    /// What must not become more, the descriptors of the one that stays included.
    remains: Remains,
    /// What the one that stays holds.
    kibibytes: i64,
    /// Files of records.
    records: usize,
}

impl Count {
    fn now(place: &Place, staying: &Sandbox) -> Result<Self> {
        let (mut descriptors, mut kibibytes) = (0, 0);
        for pid in staying.processes(&place.state())? {
            let process = PathBuf::from(format!("/proc/{pid}"));
            descriptors += fs::read_dir(process.join("fd"))?.count();
            kibibytes += proportional_kibibytes(&process).context("a process has ended")?;
        }
        let files = count_below(&place.state().join("sandboxes"));
        Ok(Self {
            remains: Remains::count()?.and("files in the state", files).and("descriptors", descriptors),
            kibibytes: i64::try_from(kibibytes)?,
            records: count_below(&place.state().join("audit")),
        })
    }
}
