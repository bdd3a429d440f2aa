//! One line of the table: what, what was measured, what is wanted and what is needed.

use serde::{Deserialize, Serialize};

/// A measurement beside its goal and its floor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    /// What was measured, and as whom.
    pub(crate) what: String,
    /// The measured values by contender, as text with a unit.
    pub(crate) measured: Vec<(String, String)>,
    /// The number that is judged.
    pub(crate) value: Option<f64>,
    /// What is wanted.
    pub(crate) goal: Option<Bound>,
    /// What is needed.
    pub(crate) floor: Option<Bound>,
}

/// A bound on a value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Bound {
    /// Not more than.
    AtMost(f64),
    /// Not less than.
    AtLeast(f64),
}

impl Bound {
    fn holds(&self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= *bound,
            Self::AtLeast(bound) => value >= *bound,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }
}

/// Prints all lines as a markdown table on stderr.
pub(crate) fn print_table(lines: &[Line]) {
    eprintln!("\n| what | measured | value | goal | not worse than | verdict |\n|---|---|---|---|---|---|");
    for line in lines {
        let measured: Vec<String> =
            line.measured.iter().map(|(contender, value)| format!("{contender} {value}")).collect();
        let value = line.value.map_or_else(String::new, |value| format!("{value:.2}"));
        let text = |bound: &Option<Bound>| bound.as_ref().map_or_else(String::new, Bound::text);
        eprintln!(
            "| {} | {} | {value} | {} | {} | {} |",
            line.what,
            measured.join(", "),
            text(&line.goal),
            text(&line.floor),
            verdict(line)
        );
    }
}

fn verdict(line: &Line) -> &'static str {
    let holds = |bound: &Option<Bound>| match (bound, line.value) {
        (Some(bound), Some(value)) => Some(bound.holds(value)),
        _ => None,
    };
    match (holds(&line.goal), holds(&line.floor)) {
        (Some(true), _) => "goal",
        (_, Some(true)) => "floor",
        (_, Some(false)) => "SHORT",
        _ => "",
    }
}
