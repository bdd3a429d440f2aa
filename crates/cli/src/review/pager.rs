//! Long text for a person: on a terminal through their own pager, else as it is.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use super::show::Colour;
use crate::failure::Failure;
use crate::output;

/// Whether colours are seen on stdout.
pub(super) fn colour() -> Colour {
    colour_of(&std::io::stdout())
}

/// Whether colours are seen: on a terminal, unless its owner says that they are not wanted.
pub(super) fn colour_of(stream: &impl std::io::IsTerminal) -> Colour {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if stream.is_terminal() && !is_refused { Colour::Seen } else { Colour::Unseen }
}

/// Prints text. A pager that is not there, or that was left, is no failure.
pub(super) fn print(text: &str) -> Result<ExitCode, Failure> {
    if !std::io::stdout().is_terminal() {
        return output::print(text);
    }
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less -R".to_owned());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return output::print(text) };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // It ends by itself where all fits, and passes colours on and nothing else.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return output::print(text) };
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(text.as_bytes());
    }
    let _ = child.wait();
    Ok(ExitCode::SUCCESS)
}
