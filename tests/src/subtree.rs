//! A part of the v1 hierarchies that root hands over to an ordinary user, who then has limits by cgroup.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Caller;

/// A directory of the caller's in each hierarchy; they go when this is dropped.
#[derive(Debug)]
pub struct Subtree {
    directories: Vec<PathBuf>,
}

impl Subtree {
    /// Makes the directories. Only root can, on a machine that has such hierarchies.
    #[must_use]
    pub fn hand_over(caller: Caller) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("handed-over-{}-{number}-{caller:?}", std::process::id());
        let directories: Vec<PathBuf> =
            ["memory", "cpu", "pids"].map(|it| Path::new("/sys/fs/cgroup").join(it).join(&name)).into();
        for directory in &directories {
            fs::create_dir(directory).unwrap();
            caller.own(directory);
            caller.own(&directory.join("cgroup.procs"));
        }
        Self { directories }
    }

    /// The words behind which a program stands there.
    #[must_use]
    pub fn prefix(&self) -> Vec<String> {
        let enter: Vec<String> =
            self.directories.iter().map(|it| format!("echo $$ > {}/cgroup.procs", it.display())).collect();
        let script = format!("{} && exec \"$@\"", enter.join(" && "));
        ["/bin/sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
    }

    /// The directories.
    #[must_use]
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }
}

impl Drop for Subtree {
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}
