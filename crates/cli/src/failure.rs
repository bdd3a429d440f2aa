//! Failures as a person reads them: `error:` what, `cause:` why, `hint:` what to do. Our own exit code is 125,
//! so that a script can tell it from the command's.

use std::error::Error as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ErrorKind};
use engine::{EngineError, Problem};

use crate::arguments::Arguments;

/// The exit code for failures of our own.
pub(crate) const OWN_FAILURE: u8 = 125;

/// A failure of our own.
#[derive(Debug)]
pub(crate) struct Failure {
    problem: Problem,
    code: u8,
}

impl Failure {
    pub(crate) fn new(error: impl Into<String>) -> Self {
        let problem = Problem { error: error.into(), causes: Vec::new(), hint: None };
        Self { problem, code: OWN_FAILURE }
    }

    pub(crate) fn cause(mut self, cause: impl ToString) -> Self {
        self.problem.causes.push(cause.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }

    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Prints the failure in one write and gives its exit code, whether or not anybody reads stderr.
    pub(crate) fn print(&self) -> ExitCode {
        let mut text = format!("error: {}\n", escape(&self.problem.error));
        for cause in &self.problem.causes {
            text.push_str(&format!("cause: {}\n", escape(cause)));
        }
        if let Some(hint) = &self.problem.hint {
            text.push_str(&format!("hint: {}\n", escape(hint)));
        }
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(self.code)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem, code: OWN_FAILURE }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        error.problem().into()
    }
}

/// Prints what clap has to say: help goes to stdout and is no failure, an error has our own form.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(OWN_FAILURE)
        }
        _ => misuse(error).print(),
    }
}

/// Those after whose options a command of the caller's stands.
const TAKE_A_COMMAND: [&str; 2] = ["agentbox run", "agentbox exec"];

fn misuse(error: &clap::Error) -> Failure {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let argument = context(ContextKind::InvalidArg);
    match (error.kind(), argument, context(ContextKind::InvalidValue)) {
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(argument), Some(value)) => {
            let failure = Failure::new(format!("cannot use '{value}' for {argument}"));
            let values = context(ContextKind::ValidValue).filter(|values| !values.is_empty());
            let cause = match (error.source(), values) {
                (Some(source), _) => source.to_string(),
                (None, Some(values)) => format!("the possible values are: {values}"),
                (None, None) => "it needs a value".to_owned(),
            };
            failure.cause(cause).hint(format!("`{} --help` tells what each option takes", meant()))
        }
        (ErrorKind::UnknownArgument, Some(argument), _)
            if argument == "--rm" && meant() == "agentbox run" =>
        {
            Failure::new("'--rm' is not expected here")
                .cause("every run removes its sandbox by itself")
                .hint("leave --rm out; `agentbox create` makes one that stays")
        }
        (ErrorKind::MissingRequiredArgument, Some(missing), _) => {
            let meant = meant();
            let hint = match missing.contains("<CMD>") {
                true => format!("a command to run stands after `--`; `{meant} --help` tells the rest"),
                false => format!("`{meant} --help` tells what each one is"),
            };
            Failure::new(format!("`{meant}` needs {missing}")).hint(hint)
        }
        (ErrorKind::UnknownArgument, Some(argument), _) => {
            let failure = Failure::new(format!("'{argument}' is not expected here"));
            match (context(ContextKind::SuggestedArg), meant()) {
                (Some(suggested), _) => failure.hint(format!("a similar one is '{suggested}'")),
                (None, meant) if TAKE_A_COMMAND.contains(&meant.as_str()) => failure
                    .hint(format!("a command to run stands after `--`; `{meant} --help` tells the rest")),
                (None, meant) => failure.hint(format!("`{meant} --help` tells what there is")),
            }
        }
        _ => {
            // What is wrong is told up to the first empty line, a list of it on lines of their own.
            let text = error.render().to_string();
            let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
            let said = lines.collect::<Vec<_>>().join(" ");
            Failure::new(said.strip_prefix("error: ").unwrap_or(&said))
                .hint(format!("`{} --help` tells what there is", meant()))
        }
    }
}

/// The command that was asked for, as far as there is one of that name.
fn meant() -> String {
    let (mut meant, mut command) = ("agentbox".to_owned(), Arguments::command());
    // What is defined when it is asked for is asked for here.
    command.build();
    // Who asks for help by a word of its own means the command after it.
    let words = std::env::args_os().skip(1);
    for word in words.enumerate().filter(|(at, word)| *at > 0 || word != "help").map(|(_, word)| word) {
        let Some(found) = command.find_subcommand(&word).cloned() else { break };
        meant.push_str(&format!(" {}", found.get_name()));
        command = found;
    }
    meant
}

/// A path or a value in a message may hold anything; a terminal must not act on it.
pub(crate) fn escape(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_inert() {
        assert_eq!(escape("a\u{1b}[2Jb\u{9b}c\n"), "a\\u{1b}[2Jb\\u{9b}c\\n");
        assert_eq!(escape("größe"), "größe");
    }
}
