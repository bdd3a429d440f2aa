//! The last probe: a complete sandbox, started like any other.

use handover::Problem;
use policy::{Backend, Report};

use super::{Finding, Health};
use crate::start::Engine;
use crate::trial;

pub(super) const NAME: &str = "sandbox";

/// Starts a sandbox and ends it; its isolation report is empty if it did not start.
pub(super) fn finding(engine: &Engine) -> (Finding, Report) {
    match trial::run(engine, Backend::Native, None) {
        Ok(report) => (Finding::ok(NAME, format!("{} ran behind the walls", trial::PROGRAM)), report),
        Err(Problem { error, causes, hint }) => {
            let detail = [vec![error], causes].concat().join(": ");
            (Finding { name: NAME, state: Health::Missing, detail, fix: hint }, Report::default())
        }
    }
}
