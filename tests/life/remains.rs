//! What of a sandbox that ended is still there, given a moment: the kernel takes namespaces apart in its own time.

use harness::{Agentbox, Caller, LeakCount, callers_apart, host_processes, leaks, leaks_of};

/// The state before a sandbox that will end badly.
#[derive(Debug)]
pub(crate) struct Remains(LeakCount);

impl Remains {
    pub(crate) fn before(caller: Caller) -> Self {
        Self(leaks_of(caller))
    }

    /// The state before what nobody in particular does.
    pub(crate) fn of_anybody() -> Self {
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

callers_apart!(what_runs_is_its_callers_and_nobody_elses, |caller| {
    let everybody = Caller::ALL.into_iter().filter(|caller| caller.is_available());
    let before: Vec<LeakCount> = everybody.map(leaks_of).collect();
    let running = Agentbox::shipped(caller).start(["sh", "-c", "echo up; cat"]);
    running.wait_for("up\n");
    let keeper = host_processes().into_iter().find(|it| it.parent == running.pid()).unwrap();
    let ours: Vec<i32> =
        host_processes().iter().filter(|it| it.parent == keeper.pid).map(|it| it.pid).collect();
    // The supervisor, and init or what makes it.
    assert!(ours.len() >= 2, "{ours:?}");
    for before in &before {
        let lines = before.of.map(leaks_of).unwrap().since(before);
        let is_counted = |pid: &i32| lines.iter().any(|line| line.starts_with(&format!("process {pid} ")));
        let counted: Vec<i32> =
            [running.pid(), keeper.pid].iter().chain(&ours).copied().filter(is_counted).collect();
        if before.of == Some(caller) {
            assert!(counted.len() >= 3, "{counted:?} of {ours:?} are counted: {lines:#?}");
        } else {
            assert!(counted.is_empty(), "counted as {:?}'s: {lines:#?}", before.of);
        }
    }
    running.finish().assert_success();
    before.iter().find(|before| before.of == Some(caller)).unwrap().assert_nothing_left();
});
