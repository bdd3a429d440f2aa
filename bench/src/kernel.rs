//! What the kernel itself takes for a part of a cycle, shown on a line of its own: to move a process into v1 cgroups.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Effort;
use crate::goal::Line;
use crate::statistics::median_milliseconds;

/// Long enough for the kernel to forget that somebody was moved before.
const PAUSE: Duration = Duration::from_millis(150);

/// A process that another moves makes it wait for a grace period; a thread that moves itself does not, and that is how
/// sandboxes get into theirs.
pub(crate) fn cgroups(effort: Effort) -> Result<Option<Line>> {
    let controllers = ["memory", "cpu", "pids"];
    let directories: Vec<PathBuf> = controllers
        .iter()
        .map(|name| PathBuf::from("/sys/fs/cgroup").join(name))
        .filter(|mount| mount.join("cgroup.clone_children").exists())
        .map(|mount| mount.join(format!("agentbox-bench-{}", std::process::id())))
        .collect();
    if directories.len() != controllers.len() {
        return Ok(None);
    }
    for directory in &directories {
        fs::create_dir(directory)?;
    }
    let (mut by_another, mut by_itself) = (Vec::new(), Vec::new());
    for _ in 0..effort.cycles {
        std::thread::sleep(PAUSE);
        by_another.push(move_another(&directories)?);
        std::thread::sleep(PAUSE);
        by_itself.push(move_itself(&directories)?);
    }
    for directory in &directories {
        fs::remove_dir(directory)?;
    }
    let shown = |times: &[Duration]| format!("{:.2} ms", median_milliseconds(times));
    let measured = vec![
        ("a process by another".to_owned(), shown(&by_another)),
        ("a thread by itself, as sandboxes do".to_owned(), shown(&by_itself)),
    ];
    let what = "into three v1 cgroups, root, cold".to_owned();
    Ok(Some(Line { what, measured, value: None, goal: None, floor: None }))
}

fn move_another(directories: &[PathBuf]) -> Result<Duration> {
    let mut process = Command::new("/bin/cat").stdin(Stdio::piped()).spawn()?;
    let begun = Instant::now();
    for directory in directories {
        fs::write(directory.join("cgroup.procs"), process.id().to_string())?;
    }
    let taken = begun.elapsed();
    drop(process.stdin.take());
    process.wait()?;
    Ok(taken)
}

fn move_itself(directories: &[PathBuf]) -> Result<Duration> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| -> Result<Duration> {
            let begun = Instant::now();
            for directory in directories {
                fs::write(directory.join("tasks"), "0")?;
            }
            Ok(begun.elapsed())
        });
        thread.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?
    })
}
