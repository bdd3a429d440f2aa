//! What of a sandbox that ended is still there, given a moment: the kernel takes namespaces apart in its own time.

use std::time::{Duration, Instant};

use harness::{Agentbox, Caller, HostProcess, LeakCount, leaks};

const PATIENCE: Duration = Duration::from_secs(5);

/// The state before a sandbox that will end badly.
#[derive(Debug)]
pub(crate) struct Remains(LeakCount);

impl Remains {
    pub(crate) fn before() -> Self {
        Self(leaks())
    }

    /// No process, namespace or mount, without anybody's doing.
    #[track_caller]
    pub(crate) fn nothing_lives(&self, after: &str) {
        self.wait(after, |line| !line.starts_with("files ") && !line.starts_with("cgroup "));
    }

    /// Nothing at all.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self, after: &str) {
        self.wait(after, |_| true);
    }

    /// Nothing lives, and the next command of the same caller removes the rest.
    #[track_caller]
    pub(crate) fn next_command_cleans_up(&self, caller: Caller, after: &str) {
        self.nothing_lives(after);
        Agentbox::shipped(caller).run(["/bin/true"]).assert_success();
        self.nothing_is_left(after);
    }

    #[track_caller]
    fn wait(&self, after: &str, counts: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut left = leaks().since(&self.0);
            left.retain(|line| counts(line) && !awaits_init(line));
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{after}: left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a line is that of a dead orphan, whose number the host's own init frees whenever it gets to it. Until
/// then some of its namespaces still have names; those of the living come with a line for their process.
fn awaits_init(line: &str) -> bool {
    let pid = line.strip_prefix("process ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let is_dead = |process: HostProcess| process.state == 'Z' && process.parent == 1;
    line.starts_with("namespace ") || pid.and_then(HostProcess::read).is_some_and(is_dead)
}
