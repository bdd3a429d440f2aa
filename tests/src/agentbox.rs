//! `agentbox run` as a test writes it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use policy::Wall;

use crate::{Caller, Finished, Running, backend, binaries};

/// A run of agentbox that is being put together.
#[derive(Clone, Debug)]
#[must_use]
pub struct Agentbox {
    caller: Caller,
    build: Build,
    program: Option<PathBuf>,
    prefix: Vec<String>,
    options: Vec<String>,
    variables: Vec<(String, String)>,
    stdin: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    Shipped,
    Weakened,
}

impl Agentbox {
    /// The program as it ships.
    pub fn shipped(caller: Caller) -> Self {
        Self::of(caller, Build::Shipped)
    }

    /// The program with these walls taken away.
    pub fn weakened(caller: Caller, walls: &[Wall]) -> Self {
        let names: Vec<&str> = walls.iter().map(|wall| wall.name()).collect();
        Self::of(caller, Build::Weakened).env("AGENTBOX_WEAKEN", &names.join(","))
    }

    fn of(caller: Caller, build: Build) -> Self {
        let (prefix, options, variables) = (Vec::new(), Vec::new(), Vec::new());
        Self { caller, build, program: None, prefix, options, variables, stdin: Vec::new() }
    }

    /// The same program at another place.
    pub fn program(mut self, path: &Path) -> Self {
        self.program = Some(path.to_owned());
        self
    }

    /// Who calls.
    #[must_use]
    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// Adds a word before the `--`.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Adds words before the `--`.
    pub fn options<I: IntoIterator<Item: AsRef<str>>>(mut self, options: I) -> Self {
        self.options.extend(options.into_iter().map(|option| option.as_ref().to_owned()));
        self
    }

    /// What the command reads; nothing if this is not called.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets a variable of the caller's.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets another program start agentbox: its words, to which agentbox's own are added. It is started by us, and
    /// what follows it is the caller's.
    pub fn behind<I: IntoIterator<Item: AsRef<str>>>(mut self, prefix: I) -> Self {
        self.prefix = prefix.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// The command as it would be started, for tests that need its descriptors.
    #[must_use]
    pub fn command<I: IntoIterator<Item: AsRef<str>>>(&self, argv: I) -> Command {
        let mut command = self.words(&["run"]);
        command.args(&self.options).arg("--");
        command.args(argv.into_iter().map(|word| word.as_ref().to_owned()));
        command
    }

    /// Any other words instead of a run.
    #[must_use]
    pub fn words(&self, words: &[&str]) -> Command {
        let agentbox = self.program.clone().unwrap_or_else(|| match self.build {
            Build::Shipped => binaries().shipped(),
            Build::Weakened => binaries().weakened(),
        });
        let variables: Vec<_> =
            backend::variables().into_iter().chain(self.variables.iter().cloned()).collect();
        let mut command = self.caller.command_behind(&self.prefix, &agentbox, &variables);
        // In this one place every sandbox of the suites gets the backend that is tested.
        match words.split_first() {
            Some((first, rest)) if ["run", "create"].contains(first) => {
                command.arg(first).args(backend::options()).args(rest)
            }
            _ => command.args(words),
        };
        command
    }

    /// Runs the command to its end. A weakened sandbox that does not start at all proves nothing and fails the
    /// test.
    #[track_caller]
    pub fn run<I: IntoIterator<Item: AsRef<str>>>(self, argv: I) -> Finished {
        let build = self.build;
        let finished = self.start(argv).finish();
        let refused =
            build == Build::Weakened && finished.code == 125 && finished.stderr().contains("error: ");
        assert!(!refused, "the weakened sandbox did not start: {}", finished.stderr());
        finished
    }

    /// Starts the command.
    #[track_caller]
    pub fn start<I: IntoIterator<Item: AsRef<str>>>(self, argv: I) -> Running {
        let command = self.command(argv);
        self.begin(command)
    }

    /// Starts any other words.
    #[track_caller]
    pub fn start_words(self, words: &[&str]) -> Running {
        let command = self.words(words);
        self.begin(command)
    }

    #[track_caller]
    fn begin(self, mut command: Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if !self.stdin.is_empty() {
            let mut stdin = child.stdin.take().unwrap();
            // A command that does not read to the end is no failure.
            std::thread::spawn(move || drop(stdin.write_all(&self.stdin)));
        }
        Running::new(child)
    }
}
