//! What moving one process into a v1 cgroup costs by itself: the kernel waits for a grace period, and no
//! program can spare it. Shown on its own line, as it is no work of ours.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Effort;
use crate::goal::Line;
use crate::statistics::median_milliseconds;

pub(crate) fn measure(effort: Effort) -> Result<Option<Line>> {
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
    let mut times = Vec::new();
    for _ in 0..effort.cycles {
        std::thread::sleep(Duration::from_millis(150));
        let mut process = Command::new("/bin/cat").stdin(Stdio::piped()).spawn()?;
        let begun = Instant::now();
        for directory in &directories {
            fs::write(directory.join("cgroup.procs"), process.id().to_string())?;
        }
        times.push(begun.elapsed());
        drop(process.stdin.take());
        process.wait()?;
    }
    for directory in &directories {
        fs::remove_dir(directory)?;
    }
    let measured = vec![("kernel".to_owned(), format!("{:.2} ms", median_milliseconds(&times)))];
    let what = "moving one process into three v1 cgroups, root, cold".to_owned();
    Ok(Some(Line { what, measured, value: None, goal: None, floor: None }))
}
