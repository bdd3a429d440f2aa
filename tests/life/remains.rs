//! What of a sandbox that ended is still there, given a moment: the kernel takes namespaces apart in its own time.

use harness::{Agentbox, Caller, LeakCount, leaks};

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
        let left = self.0.wait(|line| counts(line) && !is_namespace(line));
        assert!(left.is_empty(), "{after}: left behind: {left:#?}");
    }
}

/// Whether a line is that of a namespace. A dead orphan, whose number the host's own init frees whenever it gets to it, still
/// has some; those of the living come with a line for their process.
fn is_namespace(line: &str) -> bool {
    line.starts_with("namespace ")
}
