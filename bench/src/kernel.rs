//! What the kernel itself takes for parts of a cycle, shown on lines of their own: to move a process into v1 cgroups,
//! and to write id maps by the two set-user-id helpers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

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

/// Both helpers, one after the other, on a namespace that waits for them; none where the user has no range.
pub(crate) fn helpers(user: &str, effort: Effort) -> Result<Option<Line>> {
    let Some(first) = first_subordinate(Path::new("/etc/subuid"), user) else { return Ok(None) };
    let mut times = Vec::new();
    for _ in 0..effort.cycles {
        let mut waiting = user_namespace()?;
        let process = waiting.id().to_string();
        let begun = Instant::now();
        for helper in ["newuidmap", "newgidmap"] {
            let status = Command::new(helper).args([&process, "0", &first, "1000"]).status()?;
            if !status.success() {
                bail!("{helper} ended with {status}");
            }
        }
        times.push(begun.elapsed());
        waiting.kill()?;
        waiting.wait()?;
    }
    let measured =
        vec![("newuidmap and newgidmap".to_owned(), format!("{:.2} ms", median_milliseconds(&times)))];
    let what = format!("the two id helpers alone, {user}");
    Ok(Some(Line { what, measured, value: None, goal: None, floor: None }))
}

fn first_subordinate(file: &Path, user: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(user))?;
    line.split(':').nth(1).map(str::to_owned)
}

/// A process in a user namespace of its own without a map.
fn user_namespace() -> Result<Child> {
    let own = fs::read_link("/proc/self/ns/user")?;
    let child = Command::new("unshare").args(["--user", "sleep", "60"]).spawn()?;
    let namespace = PathBuf::from(format!("/proc/{}/ns/user", child.id()));
    for _ in 0..1000 {
        if fs::read_link(&namespace).is_ok_and(|namespace| namespace != own) {
            return Ok(child);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(anyhow::anyhow!("no user namespace came up")).context("unshare --user")
}
