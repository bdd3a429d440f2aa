//! `top`: what sandboxes use, again and again. On a terminal the table stays in one place.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::{Engine, EngineError, Phase, Sandbox, Snapshot, Usage};
use policy::SandboxId;
use serde_json::{Value, json};

use crate::arguments::Top;
use crate::failure::Failure;
use crate::output::{json_line, print_on};
use crate::processes::size;
use crate::terminal;

/// A sandbox at one moment.
struct Line {
    id: SandboxId,
    sandbox: Sandbox,
    usage: Usage,
    /// Processors in use since it was last looked at.
    cpus: f64,
}

impl Line {
    fn is_paused(&self) -> bool {
        matches!(self.sandbox.phase, Phase::Running { paused: Some(_), .. })
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
    look(&engine, &chosen, &mut before);
    loop {
        std::thread::sleep(top.interval.duration());
        let lines = look(&engine, &chosen, &mut before);
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
}

/// Looks at all that run, or those chosen of them. `before` is what they had used when they were last looked at.
fn look(
    engine: &Engine,
    chosen: &[SandboxId],
    before: &mut BTreeMap<SandboxId, (Instant, Duration)>,
) -> Vec<Line> {
    let snapshot = Snapshot::take();
    let entries = engine.list().into_iter().filter(|entry| chosen.is_empty() || chosen.contains(&entry.id));
    let mut lines = Vec::new();
    for entry in entries {
        // One that ends meanwhile, or cannot be read, has nothing to show.
        let (Ok(sandbox), Ok(usage)) = (entry.sandbox, engine.usage(&entry.id, &snapshot)) else { continue };
        let now = Instant::now();
        let last = before.insert(entry.id.clone(), (now, usage.cpu));
        let cpus = last.map_or(0.0, |(then, cpu)| {
            usage.cpu.saturating_sub(cpu).as_secs_f64() / now.duration_since(then).as_secs_f64().max(0.001)
        });
        lines.push(Line { id: entry.id, sandbox, usage, cpus });
    }
    before.retain(|id, _| lines.iter().any(|line| line.id == *id));
    lines
}

fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<14}{:<20}{:>7}{:>7}{:>10}{:>10}{:>7}{:>8}\n",
        "ID", "NAME", "CPUS", "OF", "MEMORY", "OF", "PIDS", "OF"
    );
    for line in lines {
        let limits = &line.sandbox.spec.limits;
        let name = line.sandbox.spec.name.as_ref().map_or("-", |name| name.as_str());
        let paused = if line.is_paused() { "  paused" } else { "" };
        text.push_str(&format!(
            "{:<14}{name:<20}{:>7.2}{:>7}{:>10}{:>10}{:>7}{:>8}{paused}\n",
            line.id,
            line.cpus,
            limits.cpus.to_string(),
            size(line.usage.memory),
            size(limits.memory.as_bytes()),
            line.usage.pids,
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
    let limits = &line.sandbox.spec.limits;
    json!({
        "id": line.id,
        "name": line.sandbox.spec.name,
        "cpus": (line.cpus * 1000.0).round() / 1000.0,
        "cpu_ms": u64::try_from(line.usage.cpu.as_millis()).unwrap_or(u64::MAX),
        "memory": line.usage.memory,
        "pids": line.usage.pids,
        "limits": {
            "memory": limits.memory.as_bytes(),
            "cpus": f64::from(limits.cpus.milli()) / 1000.0,
            "pids": limits.pids.count(),
        },
        "paused": line.is_paused(),
    })
}
