//! Stops everything in a cgroup where it stands, and lets it go on. v2 has that in every cgroup; on v1 it is a hierarchy
//! of its own, in which what is stopped cannot even be killed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the hierarchy on v1.
pub(super) const NAME: &str = "freezer";

/// How long the kernel may take to stop everything: what sleeps in it for good would be waited for in vain.
const STOPPING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// Whether this directory can be frozen.
pub(super) fn is_in(directory: &Path) -> bool {
    directory.join("cgroup.freeze").exists() || directory.join("freezer.state").exists()
}

/// Stops everything, and waits until it stands still.
pub(super) fn freeze(directory: &Path) -> io::Result<()> {
    let deadline = Instant::now() + STOPPING;
    let is_unified = directory.join("cgroup.freeze").exists();
    loop {
        // On v1 what was made meanwhile is caught by asking again.
        let stands = if is_unified {
            fs::write(directory.join("cgroup.freeze"), "1")?;
            fs::read_to_string(directory.join("cgroup.events"))?.lines().any(|line| line == "frozen 1")
        } else {
            fs::write(directory.join("freezer.state"), "FROZEN")?;
            fs::read_to_string(directory.join("freezer.state"))?.trim() == "FROZEN"
        };
        if stands {
            return Ok(());
        }
        if Instant::now() > deadline {
            let _ = thaw(directory);
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(LOOK);
    }
}

/// Lets everything go on.
pub(super) fn thaw(directory: &Path) -> io::Result<()> {
    if directory.join("cgroup.freeze").exists() {
        fs::write(directory.join("cgroup.freeze"), "0")
    } else {
        fs::write(directory.join("freezer.state"), "THAWED")
    }
}
