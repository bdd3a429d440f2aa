//! The isolation report on stderr, readable without colour.

use std::io::Write as _;
use std::path::PathBuf;

use policy::{Report, State, WallReport};

use crate::failure::escape;
use crate::settings::Reporting;

/// Prints the report in one write: a line of the command's must not come between.
pub(crate) fn print_report(report: &Report, covered_sockets: &[PathBuf], reporting: Reporting) {
    let lines = match reporting {
        Reporting::Always => report.walls(),
        Reporting::Gaps => report.gaps(),
    };
    let mut text = String::new();
    let mut hints: Vec<&str> = Vec::new();
    for line in lines {
        text.push_str(&describe(line));
        hints.extend(line.hint.as_deref().filter(|hint| !hints.contains(hint)));
    }
    for socket in covered_sockets {
        let path = escape(&socket.display().to_string());
        text.push_str(&format!("covered   {path}: a socket of the host's in a mounted tree\n"));
    }
    for hint in hints {
        text.push_str(&format!("hint: {}\n", escape(hint)));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One line of the report.
pub(crate) fn describe(line: &WallReport) -> String {
    let state = match line.state {
        State::Given => "given",
        State::Weaker => "weaker",
        State::Missing => "missing",
    };
    format!("{state:<9} {:<18} {}\n", line.wall.name(), escape(&line.detail))
}
