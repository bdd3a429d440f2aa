//! `pause`, `resume` and `update`: what the owner does to a sandbox that runs, without asking what is inside.

use std::process::ExitCode;

use engine::Engine;
use policy::Limits;

use crate::arguments::{Pause, Resume, Update};
use crate::failure::Failure;
use crate::output::{id_text, print};
use crate::record::Form;
use crate::sandboxes::each;
use crate::stay::in_runtime;

pub(crate) fn pause(pause: &Pause) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    each(&engine, &pause.sandboxes, |id| {
        in_runtime(async { Ok(engine.pause(id).await?) })?;
        print(&id_text(id, Form::of(pause.json)))
    })
}

pub(crate) fn resume(resume: &Resume) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    each(&engine, &resume.sandboxes, |id| {
        in_runtime(async { Ok(engine.resume(id).await?) })?;
        print(&id_text(id, Form::of(resume.json)))
    })
}

pub(crate) fn update(update: &Update) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&update.sandbox)?;
    let now = engine.look_at(&id)?.spec.limits;
    if update.memory.is_none() && update.cpus.is_none() && update.pids.is_none() && update.disk.is_none() {
        return Err(
            Failure::new("there is no limit to change").hint("name one: --memory, --cpus, --pids or --disk")
        );
    }
    let limits = Limits {
        memory: update.memory.unwrap_or(now.memory),
        cpus: update.cpus.unwrap_or(now.cpus),
        pids: update.pids.unwrap_or(now.pids),
        disk: update.disk.unwrap_or(now.disk),
    };
    in_runtime(async { Ok(engine.update(&id, limits).await?) })?;
    print(&id_text(&id, Form::of(update.json)))
}
