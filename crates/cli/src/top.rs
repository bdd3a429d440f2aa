//! `top`: what sandboxes use, again and again. On a terminal the table stays in one place.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::{Engine, EngineError, Phase, Sandbox, Snapshot, Usage};
use policy::SandboxId;
use policy::network::Mode;
use serde_json::{Value, json};
use wire::Total;

use crate::arguments::Top;
use crate::failure::Failure;
use crate::output::{json_line, print_on};
use crate::processes::size;
use crate::stay::in_runtime;
use crate::terminal;

/// How long a sandbox may take to say what has gone in and out of it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A sandbox at one moment.
struct Line {
    id: SandboxId,
    sandbox: Sandbox,
    now: Moment,
    /// What it used a second since it was last looked at; nothing where it is looked at for the first time.
    rates: Rates,
}

/// What a sandbox had used by then.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    usage: Usage,
    /// None where it has no network.
    traffic: Option<Total>,
}

#[derive(Clone, Copy, Default)]
struct Rates {
    /// Processors in use.
    cpus: f64,
    /// Bytes a second.
    sent: f64,
    received: f64,
}

impl Line {
    fn is_paused(&self) -> bool {
        matches!(self.sandbox.phase, Phase::Running { paused: Some(_), .. })
    }
}

impl Moment {
    fn rates_since(&self, then: &Self) -> Rates {
        let seconds = self.at.duration_since(then.at).as_secs_f64().max(0.001);
        let bytes = |count: fn(&Total) -> u64| {
            let counts = self.traffic.as_ref().zip(then.traffic.as_ref());
            counts.map_or(0.0, |(now, then)| count(now).saturating_sub(count(then)) as f64 / seconds)
        };
        Rates {
            cpus: self.usage.cpu.saturating_sub(then.usage.cpu).as_secs_f64() / seconds,
            sent: bytes(|total| total.sent),
            received: bytes(|total| total.received),
        }
    }
}

pub(crate) fn top(top: &Top) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let chosen: Vec<SandboxId> =
        top.sandboxes.iter().map(|text| engine.find(text)).collect::<Result<_, _>>()?;
    for id in &chosen {
        if !engine.is_running(id) {
            return Err(EngineError::NotRunning(id.to_string()).into());
        }
    }
    let redraws = !top.json && !top.once && io::stdout().is_terminal();
    let (mut before, mut drawn) = (BTreeMap::new(), 0);
    in_runtime(async {
        look(&engine, &chosen, &mut before).await;
        loop {
            tokio::time::sleep(top.interval.duration()).await;
            let lines = look(&engine, &chosen, &mut before).await;
            let text = if top.json {
                json_line(&Value::from(lines.iter().map(describe).collect::<Vec<_>>()))
            } else if redraws {
                let rows = terminal::size().map_or(usize::MAX, |size| size.rows as usize);
                redraw(&table(&lines), rows, &mut drawn)
            } else {
                table(&lines)
            };
            let is_read = print_on(&text)?;
            if !is_read || top.once || (!chosen.is_empty() && lines.is_empty()) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

/// Looks at all that run, or those chosen of them. `before` is what they had used when they were last looked at.
async fn look(engine: &Engine, chosen: &[SandboxId], before: &mut BTreeMap<SandboxId, Moment>) -> Vec<Line> {
    let snapshot = Snapshot::take();
    let entries = engine.list().into_iter().filter(|entry| chosen.is_empty() || chosen.contains(&entry.id));
    let mut lines = Vec::new();
    for entry in entries {
        // One that ends meanwhile, or cannot be read, has nothing to show.
        let (Ok(sandbox), Ok(usage)) = (entry.sandbox, engine.usage(&entry.id, &snapshot)) else { continue };
        let traffic = match sandbox.spec.network.mode {
            Mode::None => None,
            Mode::Allowlist | Mode::Full => traffic(engine, &entry.id).await,
        };
        let now = Moment { at: Instant::now(), usage, traffic };
        let rates = before.insert(entry.id.clone(), now).map(|then| now.rates_since(&then));
        lines.push(Line { id: entry.id, sandbox, now, rates: rates.unwrap_or_default() });
    }
    before.retain(|id, _| lines.iter().any(|line| line.id == *id));
    lines
}

/// One that does not say in time must not hold up the others.
async fn traffic(engine: &Engine, id: &SandboxId) -> Option<Total> {
    tokio::time::timeout(PATIENCE, engine.traffic(id)).await.ok()?.ok()?
}

fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<14}{:<20}{:>7}{:>7}{:>10}{:>10}{:>7}{:>8}{:>7}{:>10}{:>10}\n",
        "ID", "NAME", "CPUS", "OF", "MEMORY", "OF", "PIDS", "OF", "CONNS", "SENT/S", "RECV/S"
    );
    for line in lines {
        let limits = &line.sandbox.spec.limits;
        let name = line.sandbox.spec.name.as_ref().map_or("-", |name| name.as_str());
        let paused = if line.is_paused() { "  paused" } else { "" };
        let network = match &line.now.traffic {
            Some(total) => {
                let Rates { sent, received, .. } = line.rates;
                format!("{:>7}{:>10}{:>10}", total.open, size(sent as u64), size(received as u64))
            }
            None => format!("{:>7}{:>10}{:>10}", "-", "-", "-"),
        };
        text.push_str(&format!(
            "{:<14}{name:<20}{:>7.2}{:>7}{:>10}{:>10}{:>7}{:>8}{network}{paused}\n",
            line.id,
            line.rates.cpus,
            limits.cpus.to_string(),
            size(line.now.usage.memory),
            size(limits.memory.as_bytes()),
            line.now.usage.pids,
            limits.pids.to_string(),
        ));
    }
    text
}

/// The table over what was drawn last, as far as the screen is high. `drawn` is how many lines that were.
fn redraw(table: &str, rows: usize, drawn: &mut usize) -> String {
    let lines: Vec<&str> = table.lines().take(rows.saturating_sub(1).max(1)).collect();
    let back = if *drawn > 0 { format!("\x1b[{drawn}A\r") } else { String::new() };
    let body: String = lines.iter().map(|line| format!("{line}\x1b[K\n")).collect();
    *drawn = lines.len();
    format!("{back}{body}\x1b[J")
}

fn describe(line: &Line) -> Value {
    let (limits, usage) = (&line.sandbox.spec.limits, &line.now.usage);
    let network = line.now.traffic.map(|Total { open, refused, sent, received }| {
        json!({
            "open": open,
            "refused": refused,
            "sent": sent,
            "received": received,
            "sent_per_second": line.rates.sent.round(),
            "received_per_second": line.rates.received.round(),
        })
    });
    json!({
        "id": line.id,
        "name": line.sandbox.spec.name,
        "cpus": (line.rates.cpus * 1000.0).round() / 1000.0,
        "cpu_ms": u64::try_from(usage.cpu.as_millis()).unwrap_or(u64::MAX),
        "memory": usage.memory,
        "pids": usage.pids,
        "network": network,
        "limits": {
            "memory": limits.memory.as_bytes(),
            "cpus": f64::from(limits.cpus.milli()) / 1000.0,
            "pids": limits.pids.count(),
        },
        "paused": line.is_paused(),
    })
}
