//! `ps`: the processes in a sandbox, and what each exec left behind.

use std::process::ExitCode;

use engine::{Engine, Process};
use serde_json::{Value, json};
use wire::ExecState;

use crate::arguments::Ps;
use crate::failure::{Failure, escape};
use crate::output::{ago, json_line, print};
use crate::stay::in_runtime;

pub(crate) fn ps(ps: &Ps) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&ps.sandbox)?;
    let (execs, processes) = in_runtime(async {
        let execs = engine.execs(&id).await?;
        let known: Vec<(i32, u64)> = execs.iter().map(|exec| (exec.pid, exec.exec)).collect();
        let processes = engine.processes(&id, &known).await?;
        Ok((execs, processes))
    })?;
    if ps.json {
        let list: Vec<Value> = processes.iter().map(|process| describe(process, &execs)).collect();
        return print(&json_line(&Value::from(list)));
    }
    let mut text = format!(
        "{:>5}{:>8}{:>8}  {:<6}{:>9}{:>9}  {:<10}{}\n",
        "EXEC", "PID", "USER", "STATE", "MEMORY", "TIME", "STARTED", "COMMAND"
    );
    for process in &processes {
        let exec = process.exec.map_or_else(|| "-".to_owned(), |exec| exec.to_string());
        let user = process.user.map_or_else(|| "?".to_owned(), |user| user.to_string());
        let left = if is_left(process, &execs) { "  (left behind)" } else { "" };
        text.push_str(&format!(
            "{exec:>5}{:>8}{user:>8}  {:<6}{:>9}{:>8.2}s  {:<10}{}{left}\n",
            process.pid,
            process.state,
            size(process.memory),
            process.cpu.as_secs_f64(),
            ago(process.started_ms),
            escape(&words(process).join(" ")),
        ));
    }
    print(&text)
}

/// Whether what it was started by has ended.
fn is_left(process: &Process, execs: &[ExecState]) -> bool {
    let Some(number) = process.exec else { return false };
    // One that is not known any more ended long ago.
    execs.iter().find(|exec| exec.exec == number).is_none_or(|exec| exec.exited.is_some())
}

fn words(process: &Process) -> Vec<String> {
    process.command.words().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn describe(process: &Process, execs: &[ExecState]) -> Value {
    json!({
        "pid": process.pid,
        "parent": process.parent,
        "exec": process.exec,
        "left": is_left(process, execs),
        "user": process.user,
        "state": process.state.to_string(),
        "threads": process.threads,
        "memory": process.memory,
        "cpu_ms": u64::try_from(process.cpu.as_millis()).unwrap_or(u64::MAX),
        "started": process.started_ms,
        "command": words(process),
    })
}

/// A size as people read it, in three digits or so.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    let value = bytes as f64 / f64::from(2_u32.pow(10 * unit.min(3))) / if unit == 4 { 1024.0 } else { 1.0 };
    let digits = usize::from(unit > 0 && value < 10.0);
    format!("{value:.digits$}{}", UNITS[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1023, 1024, 1536, 10 << 20, (1 << 30) - 1, 5 << 30, 3 << 40, u64::MAX];
        let texts = sizes.map(size);
        assert_eq!(
            texts,
            ["0B", "1023B", "1.0KiB", "1.5KiB", "10MiB", "1024MiB", "5.0GiB", "3.0TiB", "16777216TiB"]
        );
    }
}
