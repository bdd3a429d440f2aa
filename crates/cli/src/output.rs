//! The isolation report on stderr, readable without colour.

use std::path::PathBuf;

use policy::{Report, State, WallReport};

use crate::failure::escape;
use crate::settings::Reporting;

pub(crate) fn print_report(report: &Report, covered_sockets: &[PathBuf], reporting: Reporting) {
    let lines = match reporting {
        Reporting::Always => report.walls(),
        Reporting::Gaps => report.gaps(),
    };
    for line in lines {
        eprintln!("{}", describe(line));
        if let Some(hint) = &line.hint {
            eprintln!("          {:<18} hint: {}", "", escape(hint));
        }
    }
    for socket in covered_sockets {
        eprintln!("covered   {:<18} a socket of the host's in a mounted tree", escape(&socket.display().to_string()));
    }
}

fn describe(line: &WallReport) -> String {
    let state = match line.state {
        State::Given => "given",
        State::Weaker => "weaker",
        State::Missing => "missing",
    };
    format!("{state:<9} {:<18} {}", line.wall.name(), escape(&line.detail))
}
