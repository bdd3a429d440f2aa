//! `agentbox`: the owner's program. The same file is also the keeper and the supervisor, which are started
//! from it with one word and nothing else, and what tries limits for `doctor`.

mod arguments;
mod audit;
mod conversation;
mod cp;
mod doctor;
mod exec;
mod failure;
mod generate;
mod keys;
mod outcome;
mod output;
mod pause;
mod ports;
mod processes;
mod record;
mod run;
mod sandboxes;
mod settings;
mod signals;
mod stay;
mod stdio;
mod terminal;
mod terminals;
mod top;

use std::process::ExitCode;

/// musl's own allocator gives small blocks back to the kernel one by one, which a process that lives for milliseconds
/// feels in every one of its phases.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

use clap::Parser as _;
use engine::doctor::LIMITS_PROBE;
use engine::{EngineError, WaitingKeeper};

use arguments::{Arguments, Subcommand};
use failure::Failure;

fn main() -> ExitCode {
    // The process behind a sandbox takes its orders over a socket and has no arguments to parse.
    let word = std::env::args_os().nth(1);
    let word = word.as_ref().and_then(|word| word.to_str());
    match word {
        Some("keeper") => return keeper::main(supervisor::main),
        Some(LIMITS_PROBE) => return engine::doctor::limits_probe(),
        _ => {}
    }
    // The keeper starts while the arguments are read; where they are wrong, it ends without an order.
    let starts = matches!(word, Some("run" | "create"));
    let keeper = (starts && !asks_for_help()).then(WaitingKeeper::start);
    match Arguments::try_parse() {
        Ok(arguments) => dispatch(arguments, keeper).unwrap_or_else(|failure| failure.print()),
        Err(error) => failure::usage(&error),
    }
}

/// Whether no command will run; what stands after `--` is the command's own.
fn asks_for_help() -> bool {
    let mut ours = std::env::args_os().take_while(|argument| argument != "--");
    ours.any(|argument| argument == "--help" || argument == "-h")
}

fn dispatch(
    arguments: Arguments,
    keeper: Option<Result<WaitingKeeper, EngineError>>,
) -> Result<ExitCode, Failure> {
    match arguments.subcommand {
        Subcommand::Run(run) => run::run(*run, keeper.unwrap_or_else(WaitingKeeper::start)?),
        Subcommand::Create(create) => stay::create(*create, keeper.unwrap_or_else(WaitingKeeper::start)?),
        Subcommand::Exec(exec) => exec::exec(*exec),
        Subcommand::Ls(ls) => sandboxes::ls(&ls),
        Subcommand::Inspect(inspect) => sandboxes::inspect(&inspect),
        Subcommand::Start(start) => stay::start(&start),
        Subcommand::Stop(stop) => sandboxes::stop(&stop),
        Subcommand::Wait(wait) => sandboxes::wait(&wait),
        Subcommand::Pause(pause) => pause::pause(&pause),
        Subcommand::Resume(resume) => pause::resume(&resume),
        Subcommand::Update(update) => pause::update(&update),
        Subcommand::Ps(ps) => processes::ps(&ps),
        Subcommand::Top(top) => top::top(&top),
        Subcommand::Logs(logs) => exec::logs(&logs),
        Subcommand::Attach(attach) => terminals::attach(attach),
        Subcommand::Terminals(terminals) => terminals::terminals(&terminals),
        Subcommand::Send(send) => terminals::send(&send),
        Subcommand::Port(port) => ports::port(&port),
        Subcommand::Cp(cp) => cp::cp(&cp),
        Subcommand::Audit(arguments) => audit::audit(&arguments),
        Subcommand::Gc(gc) => audit::gc(&gc),
        Subcommand::Rm(rm) => sandboxes::rm(&rm),
        Subcommand::Doctor(doctor) => doctor::doctor(&doctor),
        Subcommand::Version => generate::version(),
        Subcommand::Completions { shell } => generate::completions(shell),
        Subcommand::Man { directory } => generate::man_pages(&directory),
    }
}
