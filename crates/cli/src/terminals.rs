//! `attach`, `terminals` and `send`: terminals inside, seen and typed on from outside.

use std::process::ExitCode;

use engine::Engine;
use policy::SandboxId;
use serde_json::{Value, json};
use wire::{Ask, ExecState, Request, VERSION};

use crate::arguments::{Attach, Send, Terminals};
use crate::conversation::{About, Ended, Screen, converse};
use crate::failure::{Failure, escape};
use crate::outcome::{SIGHUP, exit_code, left, output_broken, signalled};
use crate::output::{json_line, print};
use crate::run::MAIN;
use crate::signals::Signals;
use crate::stay::in_runtime;
use crate::terminal::{self, RawMode};

pub(crate) fn attach(attach: Attach) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&attach.sandbox)?;
    let spec = engine.spec(&id)?;
    let keys = attach.detach_keys.unwrap_or_default();
    let (ended, name) = in_runtime(async {
        let found = find(&engine, &id, attach.terminal.as_deref()).await?;
        let size = terminal::size();
        let ask = Ask::Attach(wire::Attach { exec: found.exec, size, ..Default::default() });
        let mut signals = Signals::listen()?;
        let raw = RawMode::enter();
        let request = Request { version: VERSION, ask: Some(ask) };
        let screen = Screen { raw: raw.as_ref(), keys };
        let ended = converse(
            engine.connect(&id)?,
            request,
            About { engine: &engine, id: &id },
            &mut signals,
            Some(screen),
        )
        .await;
        drop(raw);
        Ok((ended, found.terminal))
    })?;
    match ended {
        Ended::Exited(exited) => Ok(exit_code(exited, &spec)),
        Ended::Detached => Ok(left(&id, &name)),
        Ended::HungUp => Ok(signalled(SIGHUP)),
        Ended::GivenUp(signal) => Ok(signalled(signal)),
        Ended::OutputBroken(error) => output_broken(error),
        Ended::Failed(_) | Ended::Lost => Err(Failure::new(format!("terminal '{name}' is gone"))),
    }
}

/// The terminal that is meant.
async fn find(engine: &Engine, id: &SandboxId, name: Option<&str>) -> Result<ExecState, Failure> {
    let mut running = running(engine, id).await?;
    let names: Vec<String> = running.iter().map(|exec| exec.terminal.clone()).collect();
    let hint = match names.as_slice() {
        [] => format!("start one with `agentbox exec -t {id} -- bash`"),
        names => format!("there are: {}", names.join(", ")),
    };
    let at = match name {
        Some(name) => names.iter().position(|other| other == name),
        None if running.len() == 1 => Some(0),
        None => names.iter().position(|other| other == MAIN),
    };
    match (at, name) {
        (Some(at), _) => Ok(running.swap_remove(at)),
        (None, Some(name)) => Err(Failure::new(format!("there is no terminal '{name}'")).hint(hint)),
        (None, None) if names.is_empty() => Err(Failure::new("there is no terminal").hint(hint)),
        (None, None) => Err(Failure::new("there is more than one terminal").hint(hint)),
    }
}

/// The terminals on which something runs.
async fn running(engine: &Engine, id: &SandboxId) -> Result<Vec<ExecState>, Failure> {
    let execs = engine.execs(id).await?;
    let runs = |exec: &ExecState| exec.exited.is_none() && exec.failed.is_none() && !exec.terminal.is_empty();
    Ok(execs.into_iter().filter(runs).collect())
}

pub(crate) fn terminals(terminals: &Terminals) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&terminals.sandbox)?;
    let running = in_runtime(running(&engine, &id))?;
    let words = |exec: &ExecState| -> Vec<String> {
        exec.argv.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    if terminals.json {
        let entry = |exec: &ExecState| json!({"terminal": exec.terminal, "exec": exec.exec, "pid": exec.pid, "command": words(exec)});
        return print(&json_line(&Value::from(running.iter().map(entry).collect::<Vec<_>>())));
    }
    let mut text = format!("{:<16}{:>6}{:>8}  {}\n", "TERMINAL", "EXEC", "PID", "COMMAND");
    for exec in &running {
        let command = escape(&words(exec).join(" "));
        let name = escape(&exec.terminal);
        text.push_str(&format!("{name:<16}{:>6}{:>8}  {command}\n", exec.exec, exec.pid));
    }
    print(&text)
}

pub(crate) fn send(send: &Send) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&send.sandbox)?;
    let (name, text) = match send.words.as_slice() {
        [name, text] => (Some(name.as_str()), text),
        [text] => (None, text),
        _ => return Err(Failure::new("there is nothing to type").hint("agentbox send ID [TERMINAL] TEXT")),
    };
    let mut bytes = text.clone().into_bytes();
    if send.enter {
        bytes.push(b'\r');
    }
    in_runtime(async {
        let exec = find(&engine, &id, name).await?.exec;
        engine.send(&id, exec, bytes.into()).await?;
        Ok(ExitCode::SUCCESS)
    })
}
