//! Which command does what.

use std::ffi::CStr;
use std::process::ExitCode;

use engine::{EngineError, Heritage, WaitingKeeper};

use crate::arguments::{Arguments, Subcommand};
use crate::failure::Failure;
use crate::{
    audit, configuration, cp, doctor, exec, generate, images, network, pause, ports, processes, proxy,
    review, run, sandboxes, setup, stay, terminals, top,
};

/// Does what was asked. The keeper was started while the arguments were read, where one is needed.
pub(crate) fn dispatch(
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
        Subcommand::Net(net) => network::net(&net),
        Subcommand::Policy(policy) => network::policy(policy),
        Subcommand::Proxy(arguments) => proxy::proxy(*arguments),
        Subcommand::Cp(cp) => cp::cp(&cp),
        Subcommand::Diff(diff) => review::diff(&diff),
        Subcommand::Apply(apply) => review::apply(&apply),
        Subcommand::Discard(discard) => review::discard(&discard),
        Subcommand::Audit(arguments) => audit::audit(&arguments),
        Subcommand::Gc(gc) => audit::gc(&gc),
        Subcommand::Images(arguments) => images::images(&arguments),
        Subcommand::Commit(commit) => images::commit(&commit),
        Subcommand::Rm(rm) => sandboxes::rm(&rm),
        Subcommand::Config(config) => configuration::config(&config),
        Subcommand::Doctor(doctor) => doctor::doctor(&doctor),
        Subcommand::Setup(arguments) => setup::setup(&arguments),
        Subcommand::Help { command } => generate::help(&command),
        Subcommand::Version => generate::version(),
        Subcommand::Completions { shell } => generate::completions(shell),
        Subcommand::Man { directory } => generate::man_pages(&directory),
    }
}

/// Whether a command will run in a new sandbox, as far as the words say at first sight; what stands after `--` is the
/// command's own.
pub(crate) fn starts_a_sandbox(heritage: &Heritage) -> bool {
    let mut words = heritage.words().skip(1).map(CStr::to_bytes);
    matches!(words.next(), Some(b"run" | b"create"))
        && !words.take_while(|word| word != b"--").any(|word| word == b"--help" || word == b"-h")
}
