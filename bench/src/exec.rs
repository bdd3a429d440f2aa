//! An exec by the control channel: asked over the supervisor's socket, from the question to the exit of
//! /bin/true, one after the other.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use engine::Engine;
use policy::SandboxId;
use wire::{Ask, Connection, Event, Exec, ExecEvent, Request, Side, VERSION};

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::{Sandbox, succeed};
use crate::statistics::{median_milliseconds, percentile_milliseconds};

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Line> {
    let sandbox = Sandbox::create(&Caller::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (spawns, exits) = runtime.block_on(async {
        let client = Client::connect(&sandbox)?;
        let (mut spawns, mut exits) = (Vec::new(), Vec::new());
        for _ in 0..effort.cycles * 10 {
            let (spawn, exit) = client.ask().await?;
            spawns.push(spawn);
            exits.push(exit);
        }
        anyhow::Ok((spawns, exits))
    })?;
    let bare = (0..effort.cycles * 10).map(|_| spawn_bare()).collect::<Result<Vec<_>>>()?;
    Ok(Line {
        what: format!("exec by the control channel, {who} (ms)"),
        measured: vec![
            ("spawn p50".to_owned(), format!("{:.2} ms", median_milliseconds(&spawns))),
            ("exit p50".to_owned(), format!("{:.2} ms", median_milliseconds(&exits))),
            ("exit p99".to_owned(), format!("{:.2} ms", percentile_milliseconds(&exits, 99))),
            ("a bare spawn p50".to_owned(), format!("{:.2} ms", median_milliseconds(&bare))),
        ],
        value: Some(median_milliseconds(&exits)),
        goal: Some(Bound::AtMost(0.8)),
        floor: Some(Bound::AtMost(1.2)),
    })
}

/// The same program without any of it: what the kernel and the program itself take.
fn spawn_bare() -> Result<Duration> {
    succeed(&mut Caller::default().command("/bin/true"))
}

/// One who asks a sandbox for processes, over one connection.
pub(crate) struct Client {
    connection: Connection,
    exec: Exec,
}

impl Client {
    /// Must be called on the runtime.
    pub(crate) fn connect(sandbox: &Sandbox) -> Result<Self> {
        let engine = Engine::open()?;
        let id: SandboxId = sandbox.id.parse()?;
        let command = engine::Command { argv: vec!["/bin/true".into()], terminal: None, timeout: None };
        let exec = command.exec(&engine.look_at(&id)?.spec);
        let (connection, _) = wire::over_socket(engine.connect(&id)?, Side::Asking)?;
        Ok(Self { connection, exec })
    }

    /// Asks for /bin/true: when it ran, and when it had ended.
    pub(crate) async fn ask(&self) -> Result<(Duration, Duration)> {
        let begun = Instant::now();
        let mut channel = self.connection.open()?;
        let request = Request { version: VERSION, ask: Some(Ask::Exec(self.exec.clone())) };
        channel.messages.sender.send_message(&request).await?;
        let mut spawned = None;
        loop {
            let message = channel.messages.receiver.next_message::<ExecEvent>().await?.context("no exit")?;
            match message.event {
                Some(Event::Started(_)) => spawned = Some(begun.elapsed()),
                Some(Event::Exited(_)) => return Ok((spawned.context("no start")?, begun.elapsed())),
                other => bail!("{other:?}"),
            }
        }
    }
}
