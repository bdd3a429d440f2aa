//! `agentbox setup`: what is missing is shown as commands, and with --yes done; then it is seen whether it works.

use std::io::{self, Write as _};
use std::process::ExitCode;

use engine::{Engine, SetupHow, SetupStep, SetupTarget};
use policy::Backend;

use crate::arguments::{self, Setup};
use crate::failure::{Failure, escape};

/// The exit code where something is left to do.
const NOT_DONE: u8 = 1;

pub(crate) fn setup(arguments: &Setup) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let target = match arguments.target {
        arguments::SetupTarget::All => SetupTarget::All,
        arguments::SetupTarget::Gvisor => SetupTarget::Backend(Backend::Gvisor),
        arguments::SetupTarget::Runc => SetupTarget::Backend(Backend::Runc),
        arguments::SetupTarget::Crun => SetupTarget::Backend(Backend::Crun),
    };
    let steps = engine.setup(target)?;
    for step in &steps {
        say(&show(step))?;
        if arguments.yes {
            step.carry_out()?;
        }
    }
    let by_hand = steps.iter().any(|step| matches!(step.how, SetupHow::ByHand(_)));
    let is_open = steps.iter().any(|step| step.how != SetupHow::Nothing);
    if is_open && !arguments.yes {
        say("\nnothing was done: add --yes to run these commands\n")?;
        return Ok(ExitCode::from(NOT_DONE));
    }
    for backend in target.backends() {
        match engine.try_backend(backend) {
            Ok(words) => say(&format!("{words}\n"))?,
            // This may be just what is left to a person; the others are tried all the same.
            Err(error) if by_hand => say(&format!("{backend} is not ready: {error}\n"))?,
            Err(error) => return Err(error.into()),
        }
    }
    if by_hand {
        say("\nwhat is left takes a person: see above\n")?;
        return Ok(ExitCode::from(NOT_DONE));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why, as a comment, and the command below it.
fn show(step: &SetupStep) -> String {
    let lines = step.lines().into_iter().map(|line| format!("{}\n", escape(&line)));
    std::iter::once(format!("# {}\n", escape(&step.why))).chain(lines).collect()
}

fn say(text: &str) -> Result<(), Failure> {
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::new("cannot write to stdout").cause(error))
}
