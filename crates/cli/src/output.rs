//! What is printed: data on stdout, the isolation report on stderr, both readable without colour.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use policy::{Report, SandboxId, State, WallReport};

use crate::failure::{Failure, escape};
use crate::record::Form;
use crate::settings::Reporting;

/// Prints data. A reader that left, as `head` does, is no failure.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    print_on(text).map(|_| ExitCode::SUCCESS)
}

/// The same, and whether anybody still reads.
pub(crate) fn print_on(text: &str) -> Result<bool, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new("cannot write to stdout").cause(error)),
    }
}

/// A value as a line of JSON that is inert on a terminal: DEL and the C1 controls, which JSON leaves as they are, may
/// come from inside.
pub(crate) fn json_line(value: &serde_json::Value) -> String {
    let mut line = String::new();
    for character in value.to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}' => line.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => line.push(character),
        }
    }
    line.push('\n');
    line
}

/// To whom something was done.
pub(crate) fn id_text(id: &SandboxId, form: Form) -> String {
    match form {
        Form::Person => format!("{id}\n"),
        Form::Program => format!("{}\n", serde_json::json!({"id": id})),
    }
}

/// How long ago that was, roughly.
pub(crate) fn ago(milliseconds: u64) -> String {
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
    let seconds = SystemTime::now().duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86400),
    }
}

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
