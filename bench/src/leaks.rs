//! Many cycles in a row, then a count of what is left: processes, mounts, cgroups, namespaces and files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::{Effort, runtime};

/// How long what has ended may take to go.
const SETTLING: Duration = Duration::from_secs(5);

pub(crate) fn measure(effort: Effort) -> Result<Line> {
    let contender = Contender::agentbox()?;
    contender.cycle()?;
    // The kernel takes network namespaces apart in its own time: those of earlier measurements would hide ours.
    std::thread::sleep(SETTLING);
    let before = Count::now();
    for _ in 0..effort.endurance {
        contender.cycle()?;
    }
    std::thread::sleep(SETTLING);
    let after = Count::now();
    let measured =
        after.named().into_iter().zip(before.named()).map(|((name, after), (_, before))| {
            (name.to_owned(), format!("{:+}", after as i64 - before as i64))
        });
    // Each kind by itself: fewer of one must not make up for more of another.
    let grown = after
        .named()
        .into_iter()
        .zip(before.named())
        .map(|((_, after), (_, before))| after.saturating_sub(before));
    let left: usize = grown.sum();
    Ok(Line {
        what: format!("left after {} cycles, root", effort.endurance),
        measured: measured.collect(),
        value: Some(left as f64),
        goal: Some(Bound::AtMost(0.0)),
        floor: Some(Bound::AtMost(0.0)),
    })
}

struct Count {
    processes: usize,
    mounts: usize,
    cgroups: usize,
    namespaces: usize,
    files: usize,
}

impl Count {
    fn now() -> Self {
        let processes: Vec<_> =
            fs::read_dir("/proc").into_iter().flatten().flatten().map(|e| e.path()).collect();
        let ours = |path: &&std::path::PathBuf| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("agentbox"))
        };
        let mut namespaces = BTreeSet::new();
        for path in &processes {
            for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
                namespaces.extend(fs::read_link(path.join("ns").join(kind)).ok());
            }
        }
        Self {
            processes: processes.iter().filter(ours).count(),
            mounts: fs::read_to_string("/proc/self/mountinfo").map_or(0, |text| text.lines().count()),
            cgroups: count_below(Path::new("/sys/fs/cgroup"), "agentbox-"),
            namespaces: namespaces.len(),
            files: fs::read_dir(runtime()).map_or(0, Iterator::count),
        }
    }

    fn named(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("processes", self.processes),
            ("mounts", self.mounts),
            ("cgroups", self.cgroups),
            ("namespaces", self.namespaces),
            ("files", self.files),
        ]
    }
}

/// Directories below `root` whose name begins with `prefix`.
fn count_below(root: &Path, prefix: &str) -> usize {
    let mut count = 0;
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                count += usize::from(entry.file_name().to_string_lossy().starts_with(prefix));
                waiting.push(entry.path());
            }
        }
    }
    count
}
