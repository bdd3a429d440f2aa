//! What is measured in turns: in each, every way to the site is taken once, so that whatever the machine does meets all
//! of them. A peer that fails on the way is left out from there on.

use anyhow::Result;

use super::task::{Kind, Outcome, Task};
use super::way::{AGENTBOX, DIRECT, Way};
use crate::Effort;
use crate::goal::{Bound, Line};

/// How many requests are made at once.
const AT_ONCE: usize = 16;

/// What tinyproxy reached of a direct connection where it was measured first, for machines without it.
const TINYPROXY: f64 = 0.46;

pub(super) fn measure(ways: &mut Vec<Way>, effort: Effort) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mebibytes = effort.read_mebibytes;
    let read = Results::take(ways, effort.turns, Task::Read { mebibytes })?;
    let floor = read.share("squid", mebibytes_a_second).map_or(0.6, |share| share.max(0.6));
    lines.push(Line {
        what: format!("{mebibytes} MiB through a tunnel, root (× direct)"),
        measured: read.shown(mebibytes_a_second, |speed| format!("{speed:.0} MiB/s")),
        value: read.share(AGENTBOX, mebibytes_a_second),
        goal: Some(Bound::AtLeast(0.8)),
        floor: Some(Bound::AtLeast(rounded(floor))),
    });
    for (kind, name) in [
        (Kind::Tunnelled, "HTTP through a tunnel"),
        (Kind::Raw, "no HTTP, through a tunnel"),
        (Kind::Forwarded, "HTTP on port 80, proxies forward it"),
    ] {
        let milliseconds = effort.request_milliseconds;
        let many = Task::Request { kind, at_once: AT_ONCE, milliseconds };
        let many = Results::take(ways, effort.turns, many)?;
        let floor = many.share("tinyproxy", Outcome::rate).unwrap_or(TINYPROXY);
        lines.push(Line {
            what: format!("new connection and small request, {AT_ONCE} at once, {name}, root (× direct)"),
            measured: many.shown(Outcome::rate, |rate| format!("{rate:.0}/s")),
            value: many.share(AGENTBOX, Outcome::rate),
            goal: Some(Bound::AtLeast(0.6)),
            floor: Some(Bound::AtLeast(rounded(floor))),
        });
        let one = Results::take(ways, effort.turns, Task::Request { kind, at_once: 1, milliseconds })?;
        lines.push(latency(&one, name));
    }
    Ok(lines)
}

/// What is added to a request, one at a time.
fn latency(results: &Results, name: &str) -> Line {
    let p50 = |outcome: &Outcome| outcome.p50;
    let p99 = |outcome: &Outcome| outcome.p99;
    let direct = results.median(DIRECT, p50);
    let mut measured = results.shown(p50, |time| format!("{time:.3} ms"));
    if let Some(slowest) = results.median(AGENTBOX, p99) {
        measured.push(("agentbox p99".to_owned(), format!("{slowest:.3} ms")));
    }
    let added = results.median(AGENTBOX, p50).zip(direct).map(|(ours, direct)| ours - direct);
    Line {
        what: format!(
            "new connection and small request, one at a time, {name}, root (ms more at p50 than direct)"
        ),
        measured,
        value: added,
        goal: Some(Bound::AtMost(0.15)),
        floor: Some(Bound::AtMost(0.3)),
    }
}

/// What each way has come to in all turns of one task.
struct Results(Vec<(&'static str, Vec<Outcome>)>);

impl Results {
    fn take(ways: &mut Vec<Way>, turns: usize, task: Task) -> Result<Self> {
        let mut results: Vec<_> = ways.iter().map(|way| (way.name, Vec::new())).collect();
        // The first turn only warms up.
        for turn in 0..=turns {
            let mut failed = Vec::new();
            for way in ways.iter_mut() {
                let outcome = match way.ask(task) {
                    Ok(outcome) => outcome,
                    Err(error) if way.is_peer() => {
                        crate::interrupt::check()?;
                        eprintln!("note: without {} from here on: {error:#}", way.name);
                        failed.push(way.name);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let of_way = results.iter_mut().filter(|(name, _)| turn > 0 && *name == way.name);
                of_way.for_each(|(_, outcomes)| outcomes.push(outcome.clone()));
            }
            ways.retain(|way| !failed.contains(&way.name));
            results.retain(|(name, _)| !failed.contains(name));
        }
        Ok(Self(results))
    }

    /// The middle of a way's turns; none where it takes no part.
    fn median(&self, name: &str, number: fn(&Outcome) -> f64) -> Option<f64> {
        let (_, outcomes) = self.0.iter().find(|(one, _)| *one == name)?;
        let mut numbers: Vec<f64> = outcomes.iter().map(number).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied()
    }

    /// A way's median beside the direct one's.
    fn share(&self, name: &str, number: fn(&Outcome) -> f64) -> Option<f64> {
        Some(self.median(name, number)? / self.median(DIRECT, number)?)
    }

    fn shown(&self, number: fn(&Outcome) -> f64, text: fn(f64) -> String) -> Vec<(String, String)> {
        let medians = self.0.iter().filter_map(|(name, _)| Some((name, self.median(name, number)?)));
        medians.map(|(name, median)| ((*name).to_owned(), text(median))).collect()
    }
}

fn mebibytes_a_second(outcome: &Outcome) -> f64 {
    outcome.rate() / f64::from(1 << 20)
}

/// A bound that can be read.
fn rounded(bound: f64) -> f64 {
    (bound * 100.0).round() / 100.0
}
