//! What is made from the definition of the command line: the version, completions and man pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::{self, Failure};

pub(crate) fn version() -> Result<ExitCode, Failure> {
    // Whoever asked may read no further.
    let _ = writeln!(io::stdout(), "agentbox {}", env!("CARGO_PKG_VERSION"));
    Ok(ExitCode::SUCCESS)
}

/// What a command says to --help.
pub(crate) fn help(command: &[String]) -> Result<ExitCode, Failure> {
    let words = std::iter::once("agentbox").chain(command.iter().map(String::as_str)).chain(["--help"]);
    match Arguments::matches(words.map(Into::into).collect()) {
        Err(told) => Ok(failure::usage(&told)),
        Ok(_) => Err(Failure::new("there is no help about that").hint("`agentbox help` lists all commands")),
    }
}

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "agentbox", &mut script);
    let _ = io::stdout().write_all(&script);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man_pages(directory: &Path) -> Result<ExitCode, Failure> {
    let unwritable = |error: io::Error| {
        Failure::new(format!("cannot write man pages to '{}'", directory.display())).cause(error)
    };
    fs::create_dir_all(directory).map_err(unwritable)?;
    clap_mangen::generate_to(Arguments::command(), directory).map_err(unwritable)?;
    Ok(ExitCode::SUCCESS)
}
