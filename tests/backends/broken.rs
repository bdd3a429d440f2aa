//! A runsc that hangs, panics or vanishes: the sandbox ends with its reason, whoever waits can stop waiting, and nothing is
//! left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::{
    Agentbox, Caller, Finished, HostProcess, Running, binaries, callers_apart, copy_program, host_processes,
    is_full, leaks_of,
};
use policy::Backend;
use rustix::process::{Pid, Signal, kill_process};

use crate::{has_gvisor, with};

/// Longer than whatever hangs is waited for, and shorter than anybody's patience.
const BOUND: Duration = Duration::from_secs(90);

/// A runsc that can be told to misbehave: a program of ours that becomes the real one, which lies in the directory that
/// releases of several files have beside them.
struct Runsc {
    directory: tempfile::TempDir,
}

impl Runsc {
    fn new(caller: Caller, how: &str) -> Self {
        let directory = caller.directory();
        let beside = directory.path().join("gvisor-bin");
        fs::create_dir(&beside).unwrap();
        let find = |place: &str| Some(Path::new(place).join("runsc")).filter(|path| path.is_file());
        let real = harness::path().split(':').find_map(find).unwrap();
        // No link: that would be a change of the real one, which others would then get to know anew.
        assert!(copy_program(&real, &beside.join("runsc")));
        let stand_in = directory.path().join("runsc");
        assert!(copy_program(&binaries().probe(), &stand_in));
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
        let runsc = Self { directory };
        runsc.tell(how);
        runsc
    }

    fn tell(&self, how: &str) {
        fs::write(self.directory.path().join("gvisor-bin/how"), how).unwrap();
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.directory.path().display())
    }

    fn sandbox(&self, caller: Caller) -> Agentbox {
        with(caller, Backend::Gvisor).env("PATH", &self.path())
    }

    fn start(&self, caller: Caller, words: &[&str]) -> Running {
        Agentbox::shipped(caller).env("PATH", &self.path()).start_words(words)
    }

    fn words(&self, caller: Caller, words: &[&str]) -> Finished {
        self.start(caller, words).finish_within(BOUND)
    }

    fn create(&self, caller: Caller) -> String {
        let created = self.words(caller, &["create", "--backend", "gvisor"]);
        created.assert_success().stdout().trim().to_owned()
    }
}

/// Somebody who does not wait for a sandbox that is not there yet.
struct Unwilling {
    running: Running,
    signal: Signal,
    begun: Instant,
}

impl Unwilling {
    const PATIENCE: Duration = Duration::from_secs(3);

    fn begin(sandbox: Agentbox, signal: Signal) -> Self {
        Self { running: sandbox.start(["echo", "started"]), signal, begun: Instant::now() }
    }

    fn assert_leaves(self) {
        std::thread::sleep(Self::PATIENCE.saturating_sub(self.begun.elapsed()));
        self.running.signal(self.signal);
        let asked = Instant::now();
        assert_eq!(self.running.finish_within(BOUND).code, 128 + self.signal.as_raw());
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    }
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A process of a sandbox's runtime, by its first word; all of them name the sandbox.
fn process(id: &str, name: &str) -> HostProcess {
    let is_it = |process: &HostProcess| {
        process.arguments.first().is_some_and(|word| word == name)
            && process.arguments.iter().any(|word| word == id)
    };
    host_processes().into_iter().find(is_it).unwrap_or_else(|| panic!("no {name} of {id}"))
}

fn inspected(caller: Caller, id: &str) -> serde_json::Value {
    let output = Agentbox::shipped(caller).words(&["inspect", id]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether a caller waits until a patience of half a minute is over. It is the same for all, so that in the short form one does.
fn waits(caller: Caller, one: Caller) -> bool {
    is_full() || caller == one
}

callers_apart!(one_that_hangs_when_it_is_first_met_is_not_waited_for, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    let runsc = Runsc::new(caller, "hangs");
    let waiting = waits(caller, Caller::Single).then(|| runsc.sandbox(caller).start(["echo", "started"]));
    // Who does not want to wait need not.
    Unwilling::begin(runsc.sandbox(caller), Signal::INT).assert_leaves();
    if let Some(running) = waiting {
        running.wait_for_stderr("waiting for runsc to start the sandbox\n");
        let finished = running.finish_within(BOUND);
        let stderr = finished.assert_refused().stderr();
        assert_eq!(finished.stdout(), "");
        assert!(stderr.contains("error: ") && stderr.contains("systrap: "), "{stderr}");
        assert!(stderr.contains("seconds") && stderr.contains("hint: "), "{stderr}");
    }
    // What is left of a trial whose caller is gone ends by itself.
    before.assert_nothing_left();
});

callers_apart!(one_that_hangs_later_is_not_waited_for, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    let runsc = Runsc::new(caller, "works");
    assert_eq!(runsc.sandbox(caller).run(["echo", "started"]).assert_success().stdout(), "started\n");
    runsc.tell("hangs");
    let unwilling = [Signal::INT, Signal::TERM].map(|signal| Unwilling::begin(runsc.sandbox(caller), signal));
    let create = ["create", "--backend", "gvisor", "--name", "hangs"];
    let tree = caller.directory();
    let under_review = ["--workspace".to_owned(), tree.path().display().to_string()];
    let waiting = waits(caller, Caller::Subordinate).then(|| {
        let kept = runsc.sandbox(caller).options(&under_review).start(["echo", "started"]);
        (runsc.sandbox(caller).start(["echo", "started"]), runsc.start(caller, &create), kept)
    });
    unwilling.into_iter().for_each(Unwilling::assert_leaves);
    if let Some((running, created, kept)) = waiting {
        kept.wait_for_stderr("waiting for runsc to start the sandbox\n");
        running.wait_for_stderr("has not answered yet; `agentbox stop --time 0 ");
        let finished = running.finish_within(BOUND);
        let stderr = finished.assert_refused().stderr();
        assert!(stderr.contains("error: runsc did not start the sandbox"), "{stderr}");
        assert!(stderr.contains("cause: it has not started init within 30 seconds"), "{stderr}");
        assert!(stderr.contains("hint: "), "{stderr}");
        // One that is made to stay is not there, and leaves no name behind.
        created.finish_within(BOUND).assert_refused();
        kept.finish_within(BOUND).assert_refused();
    }
    before.assert_nothing_left();
    runsc.tell("works");
    let id = runsc.words(caller, &create).assert_success().stdout().trim().to_owned();
    runsc.words(caller, &["rm", "--force", &id]).assert_success();
    before.assert_nothing_left();
});

callers_apart!(one_that_ends_at_the_start_is_told_with_its_words, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    let runsc = Runsc::new(caller, "works");
    runsc.sandbox(caller).run(["true"]).assert_success();
    runsc.tell("vanishes");
    let stderr = runsc.sandbox(caller).run(["true"]).assert_refused().stderr();
    assert!(stderr.contains("cause: runsc ended with code 7 and without a word"), "{stderr}");
    // What it says without end is neither waited for nor shown whole, and no byte of it reaches a terminal as it is.
    runsc.tell("babbles");
    let stderr = runsc.sandbox(caller).run(["true"]).assert_refused().stderr();
    assert!(stderr.contains("error: runsc did not start the sandbox"), "{stderr}");
    assert!(stderr.contains("not so") && stderr.len() < 8192, "{stderr}");
    assert!(!stderr.contains('\x1b') && !stderr.contains('\x07'), "{stderr:?}");
    before.assert_nothing_left();
});

callers_apart!(its_panic_is_the_reason_that_is_told, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    let runsc = Runsc::new(caller, "panics");
    let panic = "panic: Signal-induced panic";
    // Many threads inside make a trace that is longer than a pipe.
    let script = "import threading, time
for _ in range(150): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
print('runs', flush=True); time.sleep(300)";
    let id = runsc.create(caller);
    let entered = Agentbox::shipped(caller).start_words(&["exec", &id, "--", "python3", "-c", script]);
    entered.wait_for("runs\n");
    kill(process(&id, "runsc-sandbox").pid, Signal::USR2);
    let stderr = entered.finish_within(BOUND).assert_refused().stderr();
    assert!(stderr.contains("error: the sandbox ended before the command did"), "{stderr}");
    assert!(stderr.contains(panic) && stderr.len() < 8192, "{stderr}");
    let told = inspected(caller, &id);
    assert_eq!((&told["state"], &told["reason"]), (&"stopped".into(), &"killed".into()), "{told:#}");
    assert!(told["problem"].as_str().unwrap().starts_with(panic), "{told:#}");
    let record = runsc.words(caller, &["audit", &id]).assert_success().stdout();
    assert!(record.trim_end().ends_with("stopped   failed"), "{record}");
    // It can be started again, and removed.
    runsc.words(caller, &["start", &id]).assert_success();
    runsc.words(caller, &["rm", "--force", &id]).assert_success();
    before.assert_nothing_left();
});

callers_apart!(whichever_of_its_processes_vanishes_is_the_reason, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    for name in ["runsc-sandbox", "runsc-gofer", "runsc"] {
        let id = Agentbox::shipped(caller).start_words(&["create", "--backend", "gvisor"]).finish();
        let id = id.assert_success().stdout().trim().to_owned();
        let entered =
            Agentbox::shipped(caller).start_words(&["exec", &id, "--", "sh", "-c", "echo runs; sleep 300"]);
        entered.wait_for("runs\n");
        kill(process(&id, name).pid, Signal::KILL);
        let stderr = entered.finish_within(BOUND).assert_refused().stderr();
        assert!(stderr.contains("error: the sandbox ended before the command did"), "{name}: {stderr}");
        assert!(stderr.contains("cause: runsc "), "{name}: {stderr}");
        let told = inspected(caller, &id);
        assert_eq!(told["reason"], "killed", "{name}: {told:#}");
        assert!(told["problem"].as_str().unwrap().starts_with("runsc "), "{name}: {told:#}");
        Agentbox::shipped(caller).start_words(&["rm", &id]).finish().assert_success();
        before.assert_nothing_left();
    }
});

callers_apart!(a_kernel_that_stands_still_keeps_nobody, |caller| {
    if !has_gvisor() {
        return;
    }
    let before = leaks_of(caller);
    let agentbox = |words: &[&str]| Agentbox::shipped(caller).start_words(words);
    let frozen = || {
        let created = agentbox(&["create", "--backend", "gvisor"]).finish();
        let id = created.assert_success().stdout().trim().to_owned();
        kill(process(&id, "runsc-sandbox").pid, Signal::STOP);
        id
    };
    let run = with(caller, Backend::Gvisor).options(["--timeout", "3s"]);
    let running = run.start(["sh", "-c", "echo runs; sleep 300"]);
    running.wait_for("runs\n");
    let of_it = |process: &HostProcess| {
        let mut parent = process.parent;
        while parent > 1 && parent != running.pid() {
            parent = HostProcess::read(parent).map_or(1, |it| it.parent);
        }
        parent == running.pid() && process.arguments.first().is_some_and(|word| word == "runsc-sandbox")
    };
    kill(host_processes().iter().find(|it| of_it(it)).unwrap().pid, Signal::STOP);
    let [entered, stopped, removed] = [(); 3].map(|()| frozen());
    // A time-out is kept for it, and whoever did not ask for one is told, and can leave.
    let timed = agentbox(&["exec", "--timeout", "1s", &entered, "--", "true"]);
    let waiting = agentbox(&["exec", &entered, "--", "true"]);
    let stop = agentbox(&["stop", "--time", "1", &stopped]);
    let remove = agentbox(&["rm", "--force", &removed]);
    waiting.wait_for_stderr(&format!("sandbox {entered} has not answered yet"));
    waiting.signal(Signal::INT);
    assert_eq!(waiting.finish_within(BOUND).code, 130);
    stop.finish_within(BOUND).assert_success();
    agentbox(&["rm", &stopped]).finish_within(BOUND).assert_success();
    remove.finish_within(BOUND).assert_success();
    let timed = timed.finish_within(BOUND);
    assert!(timed.assert_code(124).stderr().contains("the command ran out of time"), "{}", timed.stderr());
    agentbox(&["stop", "--time", "0", &entered]).finish_within(BOUND).assert_success();
    agentbox(&["rm", &entered]).finish_within(BOUND).assert_success();
    running.finish_within(BOUND).assert_code(124);
    before.assert_nothing_left();
});
