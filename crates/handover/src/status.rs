//! What a keeper leaves on record of a sandbox that outlives its processes: a small file, written whole or not at
//! all, by the keeper alone and read by every later command.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;

use failpoint::Point;
use policy::{Report, SandboxSpec};
use serde::{Deserialize, Serialize};

/// The version of this file and of the specification beside it.
pub const STATE_VERSION: u32 = 1;

/// The file's name, in the sandbox's state directory.
pub const STATUS_FILE: &str = "status.json";

/// The specification's, in the same directory.
pub const SPEC_FILE: &str = "spec.json";
/// What it is called in a runtime directory until it is whole.
const BESIDE: &str = "spec.new";

/// The directory of what is laid over a tree of the owner's, in the same directory, and what was written inside in it.
pub const LAYER: &str = "layer";
/// See [`LAYER`].
pub const UPPER: &str = "upper";

/// A file that is there as long as nobody has been told of a new sandbox, in the same directory. Such a one ends with
/// whoever makes it, and is removed.
pub const UNCLAIMED_FILE: &str = "unclaimed";

/// A specification on file, in a sandbox's state directory or, where nothing of it is kept, in its runtime directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filed {
    /// The version of this file.
    pub version: u32,
    /// When the sandbox was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// What it was made as, with the limits that it has by now.
    pub spec: SandboxSpec,
    /// Its init's process id on the host, in a runtime directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub init: Option<i32>,
}

impl Filed {
    /// This specification, made now.
    #[must_use]
    pub fn new(spec: SandboxSpec) -> Self {
        Self { version: STATE_VERSION, created_ms: now_ms(), spec, init: None }
    }

    /// Writes it into a runtime directory, which ends with the machine at the latest. There is one or the other: whoever
    /// looks for a name finds it all the time.
    pub fn write_for_now(&self, runtime: &Path) -> io::Result<()> {
        let beside = runtime.join(BESIDE);
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(beside, runtime.join(SPEC_FILE))
    }

    /// Writes it into a state directory.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(self)?;
        write_whole(&directory.join(SPEC_FILE), &bytes, Point::EngineSpecUnnamed)
    }
}

/// What was last known of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Status {
    /// The version of this file.
    pub version: u32,
    /// What it was.
    #[serde(flatten)]
    pub state: State,
}

/// What a sandbox was when its keeper last wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// Its walls stood.
    Running {
        /// Since when, in milliseconds since 1970.
        since_ms: u64,
        /// Its keeper's process id.
        keeper: i32,
        /// Its init's, on the host.
        init: i32,
        /// Its supervisor's.
        supervisor: i32,
        /// Each wall.
        report: Report,
    },
    /// It had ended.
    Stopped {
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// Why.
        reason: Reason,
        /// What its command exited with, where it ended with that.
        code: Option<u8>,
        /// What is known beside that, for a person; its words may come from inside.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// Why a sandbox ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its command had ended.
    Exited,
    /// It was asked for.
    Stopped,
    /// Its life time was over.
    Expired,
    /// Nobody had used it for long enough.
    Idle,
    /// The kernel ended all of it for want of memory.
    Memory,
    /// Its init, its supervisor or its keeper was killed.
    Killed,
}

/// The fields of a status as they stand beside each other. A state that is read by its tag is read twice, which a list
/// of many sandboxes feels.
#[derive(Deserialize)]
struct Written {
    version: u32,
    state: Name,
    since_ms: Option<u64>,
    keeper: Option<i32>,
    init: Option<i32>,
    supervisor: Option<i32>,
    report: Option<Report>,
    at_ms: Option<u64>,
    reason: Option<Reason>,
    code: Option<u8>,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Running,
    Stopped,
}

impl TryFrom<Written> for Status {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        fn there<T>(name: &str, field: Option<T>) -> Result<T, String> {
            field.ok_or_else(|| format!("missing field `{name}`"))
        }
        let state = match written.state {
            Name::Running => State::Running {
                since_ms: there("since_ms", written.since_ms)?,
                keeper: there("keeper", written.keeper)?,
                init: there("init", written.init)?,
                supervisor: there("supervisor", written.supervisor)?,
                report: there("report", written.report)?,
            },
            Name::Stopped => State::Stopped {
                at_ms: there("at_ms", written.at_ms)?,
                reason: there("reason", written.reason)?,
                code: written.code,
                why: written.why,
            },
        };
        Ok(Self { version: written.version, state })
    }
}

impl Status {
    /// This state, now.
    #[must_use]
    pub const fn new(state: State) -> Self {
        Self { version: STATE_VERSION, state }
    }

    /// Writes it into a state directory.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let unnamed = match self.state {
            State::Running { .. } => Point::KeeperRunningUnnamed,
            State::Stopped { .. } => Point::KeeperEndUnnamed,
        };
        write_whole(&directory.join(STATUS_FILE), &serde_json::to_vec_pretty(self)?, unnamed)
    }
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Puts a file into its place with all of these bytes, or leaves what was there: also when the power fails. Each file
/// has one writer at a time, and what a killed one left beside it is written over by the next.
fn write_whole(path: &Path, bytes: &[u8], unnamed: Point) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| failpoint::attempt(unnamed))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_its_file_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let status = Status::new(State::Stopped {
            at_ms: now_ms(),
            reason: Reason::Killed,
            code: Some(3),
            why: Some("runsc was killed by signal 9".to_owned()),
        });
        status.write(directory.path()).unwrap();
        let text = fs::read_to_string(directory.path().join(STATUS_FILE)).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        assert!(text.contains("\"state\": \"stopped\""), "{text}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_running_one_is_read_as_it_was_written_and_with_all_of_it() {
        let state =
            State::Running { since_ms: 7, keeper: 2, init: 3, supervisor: 4, report: Report::default() };
        let whole = serde_json::to_value(Status::new(state.clone())).unwrap();
        assert_eq!(serde_json::from_value::<Status>(whole.clone()).unwrap(), Status::new(state));
        for field in ["version", "state", "since_ms", "keeper", "init", "supervisor", "report"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(field).unwrap();
            let error = serde_json::from_value::<Status>(part).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status.json");
        fs::create_dir(&path).unwrap();
        assert!(write_whole(&path, b"{}", Point::EngineSpecUnnamed).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
