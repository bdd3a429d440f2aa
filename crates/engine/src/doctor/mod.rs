//! The machine's check-up: what it grants a sandbox, found out by doing, and the command that mends what is
//! missing. The jail does the single things in throw-away processes; here a complete sandbox is started at the end,
//! and what was found is put into words.
//!
//! It stands on the owner's side, changes nothing on the machine and leaves nothing behind.

mod advice;
mod backends;
mod container;
mod limits;
mod sandbox;
mod surroundings;

use jail::{Ground, Need, Probe};
use policy::{State, Wall, WallReport};
use serde::Serialize;

use crate::directories::Directories;
use crate::error::EngineError;
use crate::start::Engine;
pub(crate) use limits::lacking as lacking_limits;
pub(crate) use surroundings::Surroundings;

pub use limits::{LIMITS_PROBE, limits_probe};

/// What was found. Its JSON form is stable: fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct Checkup {
    /// Our own version.
    pub version: &'static str,
    /// The kernel's release.
    pub kernel: String,
    /// Who asked.
    pub caller: Caller,
    /// One finding for each probe.
    pub probes: Vec<Finding>,
    /// The isolation report of a complete sandbox; empty if none could be started.
    pub report: Vec<WallReport>,
}

/// Who asked.
#[derive(Clone, Debug, Serialize)]
pub struct Caller {
    /// The effective user id.
    pub uid: u32,
    /// The effective group id.
    pub gid: u32,
    /// The user's name, or the id again if there is none.
    pub name: String,
}

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The stable name of the probe: the wall's own where it is a wall.
    pub name: &'static str,
    /// Whether the machine grants it.
    pub state: Health,
    /// How it is granted, or why not.
    pub detail: String,
    /// The command that mends it, where it is not ok and one is known.
    pub fix: Option<String>,
}

/// How well a thing works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// As it should.
    Ok,
    /// In a weaker form, or not, but no sandbox of this version needs it.
    Weaker,
    /// Not at all.
    Missing,
}

impl Checkup {
    /// Examines the machine. `begin` hears the name of each probe before it is made.
    ///
    /// The process must have one thread, as the children of probes are copies of it.
    pub fn of_this_machine(engine: &Engine, begin: &mut dyn FnMut(&str)) -> Result<Self, EngineError> {
        let directories = Directories::open()?;
        let surroundings = Surroundings::read();
        let ground = Ground { staging: &directories.sandboxes(), id_ranges: &directories.id_ranges() };
        let mut probes = Vec::new();
        // What keeps every sandbox from starting, first of all.
        let mut blocker = None;
        for probe in Probe::ALL {
            begin(probe.name());
            let finding = explain(*probe, probe.try_out(&ground), &surroundings);
            if finding.state == Health::Missing && probe.need() == Need::Always {
                blocker = blocker.or_else(|| finding.fix.clone());
            }
            probes.push(finding);
        }
        probes.push(surroundings.namespace_limit());
        probes.push(container::finding(&surroundings));
        begin("cgroup");
        probes.extend(limits::findings(&surroundings));
        begin("sandbox");
        let (mut finding, report) = sandbox::finding(engine);
        if !finding.is_ok() {
            finding.fix = blocker.or(finding.fix);
        }
        let starts = finding.is_ok();
        probes.push(finding);
        if starts {
            probes.extend(backends::findings(engine, begin));
        }
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            kernel: surroundings.kernel,
            caller: Caller { uid: surroundings.uid, gid: surroundings.gid, name: surroundings.user },
            probes,
            report: report.walls().into_iter().cloned().collect(),
        })
    }

    /// Whether a sandbox starts here with every wall that is never optional.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let stands =
            |wall: &Wall| self.report.iter().any(|line| line.wall == *wall && line.state == State::Given);
        let started = self.probes.iter().any(|finding| finding.name == sandbox::NAME && finding.is_ok());
        started && Wall::ALL.iter().filter(|wall| wall.is_never_optional()).all(stands)
    }
}

impl Finding {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: Health::Ok, detail: detail.into(), fix: None }
    }

    /// Whether nothing is to be mended.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.state == Health::Ok
    }
}

impl From<State> for Health {
    fn from(state: State) -> Self {
        match state {
            State::Given => Self::Ok,
            State::Weaker => Self::Weaker,
            State::Missing => Self::Missing,
        }
    }
}

/// A finding of the jail's with the command that mends it.
fn explain(probe: Probe, found: jail::Finding, surroundings: &Surroundings) -> Finding {
    let fix = match found.state {
        State::Given => None,
        State::Weaker | State::Missing => Some(advice::fix(probe, found.errno, surroundings)),
    };
    let detail = match (found.state, probe.need()) {
        (State::Weaker, Need::Only(purpose)) => format!("{} (needed only by {purpose})", found.detail),
        _ => found.detail,
    };
    Finding { name: probe.name(), state: found.state.into(), detail, fix }
}

#[cfg(test)]
mod tests {
    use policy::Report;

    use super::*;

    fn checkup(sandbox: Health, report: &Report) -> Checkup {
        let finding = Finding { state: sandbox, ..Finding::ok(sandbox::NAME, "") };
        Checkup {
            version: "0",
            kernel: String::new(),
            caller: Caller { uid: 0, gid: 0, name: String::new() },
            probes: vec![finding],
            report: report.walls().into_iter().cloned().collect(),
        }
    }

    #[test]
    fn sound_is_a_started_sandbox_with_every_wall_that_is_never_optional() {
        let mut report = Report::default();
        for wall in Wall::ALL.iter().filter(|wall| wall.is_never_optional()) {
            assert!(!checkup(Health::Ok, &report).is_sound(), "without {wall}");
            report.given(*wall, "");
        }
        report.missing(Wall::Landlock, "", "");
        assert!(checkup(Health::Ok, &report).is_sound());
        assert!(!checkup(Health::Missing, &report).is_sound());
    }

    #[test]
    fn the_json_form_is_the_documented_one() {
        let mut report = Report::default();
        report.given(Wall::Seccomp, "on");
        let json = serde_json::to_string(&checkup(Health::Ok, &report)).unwrap();
        let expected = r#"{"version":"0","kernel":"","caller":{"uid":0,"gid":0,"name":""},"#.to_owned()
            + r#""probes":[{"name":"sandbox","state":"ok","detail":"","fix":null}],"#
            + r#""report":[{"wall":"seccomp","state":"given","detail":"on"}]}"#;
        assert_eq!(json, expected);
    }
}
