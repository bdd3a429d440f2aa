//! `ls`, `inspect`, `stop`, `wait` and `rm`: what there is, and its end.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use engine::{Engine, EngineError, Entry, Pause, Phase, Reason, Sandbox};
use policy::SandboxId;
use serde_json::{Value, json};

use crate::arguments::{Inspect, Ls, Rm, Stop, Wait};
use crate::failure::{Failure, escape};
use crate::network;
use crate::output::{ago, print};
use crate::record::{self, Form};
use crate::review;
use crate::stay::in_runtime;

pub(crate) fn ls(ls: &Ls) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    drop(engine.reconcile());
    let entries: Vec<Entry> = engine.list().into_iter().filter(|entry| ls.all || runs(entry)).collect();
    if ls.json {
        let list: Vec<Value> = entries.iter().map(|entry| describe(&engine, entry)).collect();
        return print(&format!("{}\n", Value::from(list)));
    }
    if ls.quiet {
        return print(&entries.iter().map(|entry| format!("{}\n", entry.id)).collect::<String>());
    }
    let mut text = format!("{:<14}{:<20}{:<24}{}\n", "ID", "NAME", "STATE", "MADE");
    for entry in &entries {
        let (name, state, made) = match &entry.sandbox {
            Ok(sandbox) => (
                sandbox.spec.name.as_ref().map_or("-", |name| name.as_str()),
                state(&sandbox.phase),
                ago(sandbox.created_ms),
            ),
            Err(error) => ("?", format!("damaged: {}", cause(error)), "?".to_owned()),
        };
        let waiting = if engine.seems_to_wait(&entry.id) { "  changes waiting" } else { "" };
        text.push_str(&format!("{:<14}{name:<20}{:<24}{made}{waiting}\n", entry.id, escape(&state)));
    }
    print(&text)
}

/// One that cannot be read is always shown.
fn runs(entry: &Entry) -> bool {
    let phase = entry.sandbox.as_ref().map(|sandbox| &sandbox.phase);
    !matches!(phase, Ok(Phase::Stopped { .. } | Phase::Created))
}

fn cause(error: &EngineError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn state(phase: &Phase) -> String {
    match phase {
        Phase::Starting => "starting".to_owned(),
        Phase::Running { paused: Some(Pause::DiskFull), .. } => "paused: disk full".to_owned(),
        Phase::Running { paused: Some(Pause::Asked), .. } => "paused".to_owned(),
        Phase::Running { since_ms: Some(since), .. } => format!("running since {}", ago(*since)),
        Phase::Running { since_ms: None, .. } => "running".to_owned(),
        Phase::Created => "never started".to_owned(),
        Phase::Stopped { at_ms, reason, code, .. } => match (reason, code) {
            (Reason::Exited, Some(code)) => format!("exited ({code}) {}", ago(*at_ms)),
            (Reason::Exited | Reason::Stopped, _) => format!("stopped {}", ago(*at_ms)),
            (Reason::Expired, _) => format!("time was up {}", ago(*at_ms)),
            (Reason::Idle, _) => format!("idle, stopped {}", ago(*at_ms)),
            (Reason::Memory, _) => format!("out of memory {}", ago(*at_ms)),
            (Reason::Killed, _) => "killed".to_owned(),
        },
    }
}

/// One sandbox for programs.
fn describe(engine: &Engine, entry: &Entry) -> Value {
    let changes = engine.seems_to_wait(&entry.id);
    let sandbox = match &entry.sandbox {
        Ok(sandbox) => sandbox,
        Err(error) => {
            return json!({
                "id": entry.id,
                "name": null,
                "state": "damaged",
                "created": null,
                "since": null,
                "reason": null,
                "code": null,
                "kept": true,
                "problem": cause(error),
                "ports": [],
                "changes": changes,
            });
        }
    };
    let (state, since, reason, code) = match &sandbox.phase {
        Phase::Starting => ("starting", None, None, None),
        Phase::Running { since_ms, paused: Some(_), .. } => ("paused", *since_ms, None, None),
        Phase::Running { since_ms, .. } => ("running", *since_ms, None, None),
        Phase::Created => ("created", None, None, None),
        Phase::Stopped { at_ms, reason, code, .. } => ("stopped", Some(*at_ms), Some(reason), *code),
    };
    json!({
        "id": entry.id,
        "name": sandbox.spec.name,
        "state": state,
        "created": sandbox.created_ms,
        "since": since,
        "reason": reason,
        "code": code,
        "kept": sandbox.kept,
        "problem": problem(&sandbox.phase),
        "ports": sandbox.spec.ports,
        "changes": changes,
    })
}

/// What its owner should know.
fn problem(phase: &Phase) -> Option<&str> {
    match phase {
        Phase::Stopped { why, .. } => why.as_deref(),
        Phase::Running { paused: Some(Pause::DiskFull), .. } => {
            Some("paused: its workspace and outputs hold more than --disk allows")
        }
        _ => None,
    }
}

pub(crate) fn inspect(inspect: &Inspect) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&inspect.sandbox)?;
    engine.close_record(&id);
    let sandbox = engine.look_at(&id)?;
    let record = record::describe(&engine, &id);
    let report = match &sandbox.phase {
        Phase::Running { report: Some(report), .. } => json!(engine.with_limits(&sandbox, report.clone())),
        _ => Value::Null,
    };
    let mut spec = json!(sandbox.spec);
    spec["network"] = network::shown(&sandbox.spec.network);
    let mut whole = describe(&engine, &Entry { id, sandbox: Ok(sandbox) });
    whole["spec"] = spec;
    whole["report"] = report;
    whole["record"] = record;
    let text =
        serde_json::to_string_pretty(&whole).map_err(|error| Failure::new("cannot print").cause(error))?;
    print(&format!("{text}\n"))
}

pub(crate) fn stop(stop: &Stop) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let grace = Duration::from_secs(stop.time.into());
    end_each(&engine, &stop.sandboxes, Form::of(stop.json), |id| {
        end(&engine, id, grace)?;
        review::tell_of_the_end(&engine, id);
        Ok(())
    })
}

pub(crate) fn rm(rm: &Rm) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    end_each(&engine, &rm.sandboxes, Form::of(rm.json), |id| {
        if !rm.force && !engine.is_running(id) {
            engine.check_nothing_waits(id)?;
        }
        if rm.force && engine.is_running(id) {
            // It has its chance to answer; without an answer it is killed.
            if end(&engine, id, Duration::ZERO).is_err() {
                engine.kill(id)?;
            }
        }
        // Nobody can tell any more when it is gone.
        review::tell_of_the_end(&engine, id);
        Ok(engine.remove(id)?)
    })
}

/// Does something that ends each, and tells how far its record goes.
fn end_each(
    engine: &Engine,
    texts: &[String],
    form: Form,
    mut work: impl FnMut(&SandboxId) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    each(engine, texts, |id| {
        work(id)?;
        if form == Form::Program {
            return print(&format!("{}\n", json!({"id": id, "record": record::describe(engine, id)})));
        }
        print(&format!("{id}\n"))?;
        record::tell_a_person(engine, id);
        Ok(ExitCode::SUCCESS)
    })
}

/// Does something to each; a failure with one does not spare the others.
pub(crate) fn each(
    engine: &Engine,
    texts: &[String],
    mut work: impl FnMut(&SandboxId) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for text in texts {
        let done = engine.find(text).map_err(Failure::from).and_then(|id| work(&id));
        if let Err(failure) = done {
            code = failure.print();
        }
    }
    Ok(code)
}

/// Ends a sandbox and waits until nothing of its processes is left.
fn end(engine: &Engine, id: &SandboxId, grace: Duration) -> Result<(), Failure> {
    if !engine.is_running(id) {
        return Ok(());
    }
    in_runtime(async {
        let stopping = engine.stop(id, grace);
        tokio::pin!(stopping);
        tokio::select! {
            stopped = &mut stopping => return Ok(stopped?),
            () = tokio::time::sleep(PATIENCE) => say_waiting(id, grace),
        }
        Ok(stopping.await?)
    })?;
    Ok(engine.expect_end(id)?)
}

/// What takes longer than this is said to take a while.
const PATIENCE: Duration = Duration::from_secs(1);

fn say_waiting(id: &SandboxId, grace: Duration) {
    let seconds = grace.as_secs();
    let _ = writeln!(io::stderr(), "waiting for what runs in {id} to end, {seconds} seconds at most");
}

pub(crate) fn wait(wait: &Wait) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&wait.sandbox)?;
    let kept = engine.look_at(&id)?.kept;
    engine.wait_for_end(&id);
    // A keeper that was killed has said nothing; it is on record before its end is told.
    engine.close_record(&id);
    review::tell_of_the_end(&engine, &id);
    let code = match engine.look_at(&id) {
        Ok(Sandbox { phase: Phase::Stopped { code, .. }, .. }) => code,
        Ok(_) => None,
        Err(_) if !kept => None,
        Err(error) => return Err(error.into()),
    };
    if wait.json {
        let told = json!({"id": id, "code": code, "record": record::describe(&engine, &id)});
        return print(&format!("{told}\n"));
    }
    if let Some(code) = code {
        print(&format!("{code}\n"))?;
    }
    record::tell_a_person(&engine, &id);
    Ok(ExitCode::SUCCESS)
}
