//! Control: an init that was taken over attacks its supervisor. Whatever it sends, the supervisor stays small, the
//! caller is told, and everything ends.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use harness::{Caller, binaries, callers_apart, copy_program, host_processes, leaks_of};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The most that a supervisor may ever hold, in KiB: windows of a few lanes, and itself.
const LARGEST: u64 = 32 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

/// Our own program beside an init that is not ours.
fn start(caller: Caller, attack: &str) -> (Child, TempDir) {
    let directory = caller.directory();
    let agentbox = directory.path().join("agentbox");
    assert!(copy_program(&binaries().shipped(), &agentbox));
    assert!(copy_program(&binaries().probe(), &directory.path().join("agentbox-init")));
    let mounted = directory.path().join("attack");
    fs::create_dir(&mounted).unwrap();
    fs::write(mounted.join("name"), attack).unwrap();
    let mut command = caller.command(&agentbox);
    command.args(["run", "--mount", &format!("{}:/attack", mounted.display()), "--", "/bin/true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    (command.spawn().unwrap(), directory)
}

/// The most memory that the supervisor has had by now; none once it is gone.
fn peak(cli: u32) -> Option<u64> {
    let all = host_processes();
    let child = |parent: i32, name: &str| all.iter().find(|it| it.parent == parent && it.name == name);
    let keeper = child(cli.cast_signed(), "agentbox-keeper")?;
    let supervisor = child(keeper.pid, "agentbox-superv")?;
    let status = fs::read_to_string(supervisor.file("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

callers_apart!(control_a_hostile_init, |caller| {
    let before = leaks_of(caller);
    for attack in ["channels", "openings", "output", "message", "garbage", "cut"] {
        let (mut child, _directory) = start(caller, attack);
        let deadline = Instant::now() + PATIENCE;
        let mut largest = 0;
        while child.try_wait().unwrap().is_none() {
            largest = largest.max(peak(child.id()).unwrap_or(0));
            assert!(largest < LARGEST, "{attack}: the supervisor holds {largest} KiB");
            if Instant::now() > deadline {
                child.kill().unwrap();
                panic!("{attack}: the caller is kept waiting");
            }
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{attack}: {said}");
        assert!(said.lines().any(|line| line.starts_with("error: ")), "{attack}: {said}");
        before.assert_nothing_left();
    }
});

callers_apart!(control_a_silent_init, |caller| {
    let before = leaks_of(caller);
    let (mut child, _directory) = start(caller, "silence");
    let deadline = Instant::now() + PATIENCE;
    while peak(child.id()).is_none() {
        assert!(Instant::now() < deadline, "the sandbox does not start");
    }
    // A request to end that nobody inside follows, and the third that is not asked for.
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the caller cannot end it");
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    before.assert_nothing_left();
});
