//! An exec by the control channel: asked over the supervisor's socket, from the question to the exit of
//! /bin/true, one after the other.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use wire::{Ask, Connection, Event, Exec, ExecEvent, Request, Side, VERSION};

use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::statistics::{median_milliseconds, percentile_milliseconds};
use crate::{Effort, runtime};

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Line> {
    let mut sandbox = Contender::agentbox()?.command(&["/bin/sleep", "600"]).spawn()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(ask_often(effort.cycles * 10));
    let entered = (0..effort.cycles * 10).map(|_| enter(sandbox.id())).collect::<Result<Vec<_>>>();
    sandbox.kill()?;
    sandbox.wait()?;
    let (spawns, exits) = measured?;
    let bare = (0..effort.cycles * 10).map(|_| spawn_bare()).collect::<Result<Vec<_>>>()?;
    Ok(Line {
        what: format!("exec by the control channel, {who} (ms)"),
        measured: vec![
            ("spawn p50".to_owned(), format!("{:.2} ms", median_milliseconds(&spawns))),
            ("exit p50".to_owned(), format!("{:.2} ms", median_milliseconds(&exits))),
            ("exit p99".to_owned(), format!("{:.2} ms", percentile_milliseconds(&exits, 99))),
            (
                "nsenter p50".to_owned(),
                entered.map_or_else(
                    |_| "does not start".to_owned(),
                    |entered| format!("{:.2} ms", median_milliseconds(&entered)),
                ),
            ),
            ("a bare spawn p50".to_owned(), format!("{:.2} ms", median_milliseconds(&bare))),
        ],
        value: Some(median_milliseconds(&exits)),
        goal: Some(Bound::AtMost(0.8)),
        floor: Some(Bound::AtMost(1.2)),
    })
}

/// The same program by way of nsenter, which joins the namespaces and sets up nothing else.
fn enter(agentbox: u32) -> Result<Duration> {
    let child = |parent: u32, index: usize| -> Result<u32> {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        Ok(children.split_whitespace().nth(index).context("no such process")?.parse()?)
    };
    // The keeper's first child is init, its second the supervisor.
    let init = child(child(agentbox, 0)?, 0)?.to_string();
    let namespaces = ["--user", "--mount", "--pid", "--net", "--ipc", "--uts", "--preserve-credentials"];
    let mut command = Command::new("nsenter");
    command.args(["--target", &init]).args(namespaces).arg("/bin/true").stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status()?;
    let taken = begun.elapsed();
    if status.success() { Ok(taken) } else { bail!("nsenter ended with {status}") }
}

/// The same program without any of it: what the kernel and the program itself take.
fn spawn_bare() -> Result<Duration> {
    let begun = Instant::now();
    Command::new("/bin/true").status()?;
    Ok(begun.elapsed())
}

async fn ask_often(times: usize) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let socket = wait_for_socket().await?;
    let (connection, _) = wire::over_socket(UnixStream::connect(socket)?, Side::Asking)?;
    let (mut spawns, mut exits) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let (spawn, exit) = ask(&connection).await?;
        spawns.push(spawn);
        exits.push(exit);
    }
    Ok((spawns, exits))
}

/// The socket of the one sandbox that this user has just started.
async fn wait_for_socket() -> Result<PathBuf> {
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let Ok(entries) = std::fs::read_dir(runtime()) else { continue };
        let sockets = entries.flatten().map(|entry| entry.path().join("control.sock"));
        if let Some(socket) = sockets.into_iter().find(|socket| socket.exists()) {
            // The walls may still be going up; the first question would wait for them.
            tokio::time::sleep(Duration::from_millis(300)).await;
            return Ok(socket);
        }
    }
    bail!("no sandbox came up")
}

async fn ask(connection: &Connection) -> Result<(Duration, Duration)> {
    let exec = Exec {
        argv: vec!["/bin/true".into()],
        environment: vec!["PATH=/usr/bin:/bin".into()],
        workdir: "/workspace".into(),
        uid: 1000,
        gid: 1000,
        ..Default::default()
    };
    let begun = Instant::now();
    let mut channel = connection.open()?;
    let request = Request { version: VERSION, ask: Some(Ask::Exec(exec)) };
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
