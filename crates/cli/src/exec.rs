//! `agentbox exec` and `agentbox logs`: a process in a sandbox that is there, attached to this terminal or script.

use std::io::Write as _;
use std::process::ExitCode;

use engine::{Command, Engine, Phase, Reason};
use policy::SandboxSpec;
use wire::{Ask, Attach, Request, VERSION};

use crate::arguments::{Exec, Logs};
use crate::conversation::{About, Ended, Screen, converse};
use crate::failure::{Failure, escape};
use crate::outcome::{Asker, SIGHUP, exit_code, not_started, out_of_memory, output_broken, signalled};
use crate::output::print;
use crate::settings;
use crate::signals::Signals;
use crate::stay::{ask_until_started, in_runtime};
use crate::terminal::RawMode;

/// There is a terminal of that name.
const EEXIST: i32 = 17;

pub(crate) fn exec(exec: Exec) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&exec.sandbox)?;
    let spec = spec(engine.spec(&id)?, &exec)?;
    settings::check_size(&exec.command, &spec.environment)?;
    let terminal = settings::terminal(&exec.terminal, exec.detach)?;
    let command = Command { argv: exec.command, terminal, timeout: exec.timeout };
    if command.argv[0].is_empty() {
        return Err(Failure::new("the command is empty").hint("name a program after `--`"));
    }
    let client = engine.enter(&id)?;
    let terminal_name = exec.terminal_name.as_ref().map_or_else(String::new, ToString::to_string);
    let keys = exec.terminal.detach_keys.clone().unwrap_or_default();
    // A command on a terminal outlives the one who looks at it.
    let asked = wire::Exec { detached: terminal.is_some(), terminal_name, ..command.exec(&spec) };
    let about = About { engine: &engine, id: &id };
    if exec.detach {
        let asked = wire::Exec { detached: true, ..asked };
        let started = in_runtime(async { Ok(ask_until_started(client, asked, about).await) })?;
        return match started {
            Ok(number) if exec.json => print(&format!("{}\n", serde_json::json!({"exec": number}))),
            Ok(number) => print(&format!("{number}\n")),
            Err(Some(failed)) => Err(not_started(failed, &command.argv[0], (&spec, Asker::Exec))),
            Err(None) => Err(lost(&engine, &spec)),
        };
    }
    let request = Request { version: VERSION, ask: Some(Ask::Exec(asked)) };
    let ended = in_runtime(async {
        let mut signals = Signals::listen()?;
        let raw = command.terminal.and_then(|_| RawMode::enter());
        let screen = command.terminal.map(|_| Screen { raw: raw.as_ref(), keys });
        let ended = converse(client, request, about, &mut signals, screen).await;
        // The terminal is given back before anything is said.
        drop(raw);
        Ok(ended)
    })?;
    match ended {
        Ended::Exited(exited) => Ok(exit_code(exited, &spec)),
        Ended::Failed(failed) if failed.errno == EEXIST && failed.step == wire::Step::Request as i32 => {
            Err(Failure::new("the name of the terminal is taken")
                .hint(format!("`agentbox terminals {id}` lists those in use")))
        }
        Ended::Failed(failed) => Err(not_started(failed, &command.argv[0], (&spec, Asker::Exec))),
        Ended::Detached => Ok(left_by(&id)),
        Ended::HungUp => Ok(signalled(SIGHUP)),
        Ended::OutputBroken(error) => output_broken(error),
        Ended::GivenUp(signal) => Ok(signalled(signal)),
        Ended::Lost => Err(lost(&engine, &spec)),
    }
}

fn left_by(id: &policy::SandboxId) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "detached; `agentbox terminals {id}` lists where to come back to");
    ExitCode::SUCCESS
}

/// The sandbox is gone, and has said why by the time that its keeper is, too.
fn lost(engine: &Engine, spec: &SandboxSpec) -> Failure {
    let failure = Failure::new("the sandbox ended before the command did");
    let _ = engine.expect_end(&spec.id);
    match engine.look_at(&spec.id).map(|sandbox| sandbox.phase) {
        Ok(Phase::Stopped { reason: Reason::Memory, .. }) => out_of_memory(spec),
        Ok(Phase::Stopped { why: Some(why), .. }) => failure.cause(escape(&why)),
        _ => failure.cause("it was stopped, or its init, supervisor or keeper was killed"),
    }
}

/// The sandbox's own settings, and those of this command over them.
fn spec(mut spec: SandboxSpec, exec: &Exec) -> Result<SandboxSpec, Failure> {
    spec.environment.extend(settings::environment(&exec.env, &exec.env_file)?);
    if let Some(workdir) = &exec.workdir {
        spec.workdir = workdir.clone();
    }
    if let Some(user) = exec.user {
        engine::check_user(spec.backend, user)?;
        spec.user = user;
    }
    Ok(spec)
}

pub(crate) fn logs(logs: &Logs) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&logs.sandbox)?;
    in_runtime(async {
        let execs = engine.execs(&id).await?;
        let numbers: Vec<String> = execs.iter().map(|exec| exec.exec.to_string()).collect();
        let unknown = || {
            let known = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
            Failure::new("there is no such process").hint(format!("those that are known: {known}"))
        };
        let exec = match logs.exec {
            Some(number) => execs.iter().find(|exec| exec.exec == number).ok_or_else(unknown)?,
            None => execs.first().ok_or_else(unknown)?,
        };
        let attach = Attach { exec: exec.exec, no_follow: !logs.follow, ..Default::default() };
        let request = Request { version: VERSION, ask: Some(Ask::Attach(attach)) };
        match crate::conversation::look(engine.connect(&id)?, request).await {
            Ended::OutputBroken(error) => output_broken(error),
            _ => Ok(ExitCode::SUCCESS),
        }
    })
}
