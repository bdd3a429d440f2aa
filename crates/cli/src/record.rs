//! How far the record of a sandbox goes, told at its end: whoever keeps that line finds later whether the end of the
//! record was cut off.

use std::io::{self, IsTerminal as _, Write as _};

use engine::{Engine, RecordHead};
use policy::SandboxId;
use serde_json::{Value, json};

/// Whom something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Person,
    Program,
}

impl Form {
    /// As `--json` says.
    pub(crate) const fn of(json: bool) -> Self {
        if json { Self::Program } else { Self::Person }
    }
}

/// What the digits of a head are preceded by.
const SCHEME: &str = "sha256:";

/// A head as it was told, or without its scheme.
pub(crate) fn digits(head: &str) -> &str {
    head.strip_prefix(SCHEME).unwrap_or(head)
}

/// For programs; null where there is no record that could be read.
pub(crate) fn describe(engine: &Engine, id: &SandboxId) -> Value {
    engine.record_head(id).map_or(
        Value::Null,
        |RecordHead { entries, head }| json!({"entries": entries, "head": format!("{SCHEME}{head}")}),
    )
}

/// For a person, where one looks at stderr: a script that wants it asks for JSON.
pub(crate) fn tell_a_person(engine: &Engine, id: &SandboxId) {
    if io::stderr().is_terminal() {
        tell(engine, id);
    }
}

/// For whoever asked for it.
pub(crate) fn tell(engine: &Engine, id: &SandboxId) {
    if let Some(RecordHead { entries, head }) = engine.record_head(id) {
        let plural = if entries == 1 { "entry" } else { "entries" };
        let _ = writeln!(io::stderr(), "record: {entries} {plural}, head {SCHEME}{head}");
    }
}
