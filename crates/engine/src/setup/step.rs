//! One step: what it is for, how it is shown, and the doing of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use policy::{Backend, Standing};
use rustix::process::geteuid;

use crate::backends;
use crate::error::EngineError;

/// What runs a command as root for those who may.
pub(crate) const SUDO: &str = "sudo";

/// Whether it lets us. `sudo -v` would ask for a password wherever one of several rules does, also of who needs none.
pub(crate) const ASK_SUDO: [&str; 2] = [SUDO, "true"];

/// One step of setting a machine up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupStep {
    /// What it is for.
    pub why: String,
    /// What is done.
    pub how: SetupHow,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupHow {
    /// Nothing: it is as it should be.
    Nothing,
    /// A program is run.
    Run {
        /// Variables for it.
        environment: Vec<(String, String)>,
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// A program is looked at, and goes no further where holes are known in it.
    Check {
        /// Whose it is.
        backend: Backend,
        /// Where it is.
        program: PathBuf,
    },
    /// A file is written, as root.
    Write {
        /// Which.
        path: PathBuf,
        /// What is in it.
        contents: String,
    },
    /// Only a person can.
    ByHand(Vec<String>),
}

impl SetupStep {
    /// A command.
    pub(crate) fn run(why: &str, argv: Vec<String>) -> Self {
        Self { why: why.to_owned(), how: SetupHow::Run { environment: Vec::new(), argv } }
    }

    /// What is left to a person.
    pub(crate) fn by_hand(why: &str, lines: impl IntoIterator<Item = String>) -> Self {
        Self { why: why.to_owned(), how: SetupHow::ByHand(lines.into_iter().collect()) }
    }

    /// Whether another program has to make us root for it.
    pub(crate) fn asks_for_root(&self) -> bool {
        match &self.how {
            SetupHow::Run { argv, .. } => argv.first().is_some_and(|program| program == SUDO),
            SetupHow::Write { .. } => !geteuid().is_root(),
            SetupHow::Nothing | SetupHow::Check { .. } | SetupHow::ByHand(_) => false,
        }
    }

    /// What is done, line by line, as it would be typed.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match &self.how {
            SetupHow::Nothing => Vec::new(),
            SetupHow::Run { environment, argv } => {
                let variables = environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
                vec![variables.chain(argv.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")]
            }
            SetupHow::Check { program, .. } => {
                vec![format!("{} --version", quoted(&program.to_string_lossy()))]
            }
            SetupHow::Write { path, contents } => {
                let sudo = if geteuid().is_root() { String::new() } else { format!("{SUDO} ") };
                let above = path.parent().filter(|above| !above.exists());
                let make = above.map(|above| format!("{sudo}mkdir -p {}", quoted(&above.to_string_lossy())));
                let first = format!("{sudo}tee {} >/dev/null <<'EOF'", quoted(&path.to_string_lossy()));
                let text = contents.lines().map(str::to_owned);
                make.into_iter().chain([first]).chain(text).chain(["EOF".to_owned()]).collect()
            }
            SetupHow::ByHand(lines) => lines.clone(),
        }
    }

    /// Does it.
    pub fn carry_out(&self) -> Result<(), EngineError> {
        match &self.how {
            SetupHow::Nothing | SetupHow::ByHand(_) => Ok(()),
            SetupHow::Run { environment, argv } => run(environment, argv),
            SetupHow::Check { backend, program } => {
                let unusable = |source| EngineError::Program { path: program.clone(), source };
                match backends::look_at(*backend, program).map_err(unusable)?.standing {
                    Standing::Sound => Ok(()),
                    Standing::Vulnerable(why) => Err(unusable(std::io::Error::other(format!("it {why}")))),
                }
            }
            SetupHow::Write { path, contents } => write(path, contents),
        }
    }
}

fn run(environment: &[(String, String)], argv: &[String]) -> Result<(), EngineError> {
    let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
    let failed = |source| EngineError::Setup { command: argv.join(" "), source };
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .status()
        .map_err(failed)?;
    if status.success() { Ok(()) } else { Err(failed(std::io::Error::other(status.to_string()))) }
}

/// Writes a file of root's: here, or where the caller is not root by another program, which gets the contents.
fn write(path: &Path, contents: &str) -> Result<(), EngineError> {
    let failed = |source| EngineError::Setup { command: format!("write {}", path.display()), source };
    if geteuid().is_root() {
        let above = path.parent().map_or(Ok(()), fs::create_dir_all);
        return above.and_then(|()| fs::write(path, contents)).map_err(failed);
    }
    if let Some(above) = path.parent() {
        run(&[], &[SUDO, "mkdir", "-p", &above.display().to_string()].map(str::to_owned))?;
    }
    let mut child = Command::new(SUDO)
        .arg("tee")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(contents.as_bytes()));
    let status = child.wait().map_err(failed)?;
    written.map_err(failed)?;
    if status.success() { Ok(()) } else { Err(failed(std::io::Error::other(status.to_string()))) }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@+%,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_they_can_be_typed() {
        let environment = vec![("GOBIN".to_owned(), "/a b".to_owned())];
        let step = SetupStep {
            why: String::new(),
            how: SetupHow::Run { environment, argv: vec!["go".to_owned(), "it's".to_owned()] },
        };
        assert_eq!(step.lines(), ["GOBIN='/a b' go 'it'\\''s'"]);
    }

    #[test]
    fn a_command_that_fails_is_an_error_and_one_with_holes_goes_no_further() {
        assert!(run(&[], &["/bin/true".to_owned()]).is_ok());
        let error = run(&[], &["/bin/false".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("/bin/false"), "{error}");
        let check = SetupHow::Check { backend: Backend::Gvisor, program: "/bin/true".into() };
        let step = SetupStep { why: String::new(), how: check };
        assert!(step.carry_out().is_err(), "what says nothing of its version counts as old");
    }
}
