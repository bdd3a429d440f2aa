//! Failures as a person reads them: `error:` what, `cause:` why, `hint:` what to do. Our own exit code is 125,
//! so that a script can tell it from the command's.

use std::process::ExitCode;

use engine::{EngineError, Problem};

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

    /// Prints the failure and gives its exit code.
    pub(crate) fn print(&self) -> ExitCode {
        eprintln!("error: {}", escape(&self.problem.error));
        for cause in &self.problem.causes {
            eprintln!("cause: {}", escape(cause));
        }
        if let Some(hint) = &self.problem.hint {
            eprintln!("hint: {}", escape(hint));
        }
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

/// Prints what clap has to say: help goes to stdout and is no failure.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(OWN_FAILURE) } else { ExitCode::SUCCESS }
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
