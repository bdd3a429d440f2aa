//! A run of `agentbox doctor --json`, read.

use std::process::Command;

use harness::{Agentbox, Caller, Finished, binaries};
use serde_json::Value;

/// What the doctor said.
#[derive(Debug)]
pub(crate) struct Checkup {
    pub(crate) code: i32,
    pub(crate) json: Value,
}

/// The doctor, started by another program's words.
pub(crate) fn command(caller: Caller, prefix: &[String]) -> Command {
    let mut command = caller.command_behind(prefix, &binaries().shipped(), &[]);
    command.arg("doctor");
    command
}

/// Runs the doctor behind a prefix and reads its JSON.
#[track_caller]
pub(crate) fn examine(caller: Caller, prefix: &[String]) -> Checkup {
    let output = command(caller, prefix).arg("--json").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {stderr}", String::from_utf8_lossy(&output.stdout)));
    Checkup { code: output.status.code().unwrap(), json }
}

/// Runs a command in a sandbox behind the same prefix.
pub(crate) fn run(caller: Caller, prefix: &[String]) -> Finished {
    Agentbox::shipped(caller).behind(prefix).run(["echo", "it ran"])
}

impl Checkup {
    /// The state, the detail and the fix of a probe.
    #[track_caller]
    pub(crate) fn probe(&self, name: &str) -> (&str, &str, Option<&str>) {
        let probes = self.json["probes"].as_array().unwrap();
        let finding = probes
            .iter()
            .find(|finding| finding["name"] == name)
            .unwrap_or_else(|| panic!("no probe '{name}' in {:#}", self.json));
        (finding["state"].as_str().unwrap(), finding["detail"].as_str().unwrap(), finding["fix"].as_str())
    }

    /// The state of a probe.
    #[track_caller]
    pub(crate) fn state(&self, name: &str) -> &str {
        self.probe(name).0
    }

    /// Fails the test unless this probe is missing and its fix holds this text.
    #[track_caller]
    pub(crate) fn assert_missing(&self, name: &str, fix: &str) {
        let found = self.probe(name);
        assert_eq!(found.0, "missing", "{name}: {found:?}");
        assert!(found.2.is_some_and(|text| text.contains(fix)), "{name}: no '{fix}' in {found:?}");
    }
}
