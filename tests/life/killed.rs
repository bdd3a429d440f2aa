//! Life: 62. One of our processes is killed, or the person presses Ctrl-C, at any moment.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use harness::{Agentbox, Dice, HostProcess, backend, callers_apart, host_processes, is_full};
use policy::Backend;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::remains::Remains;

/// A sandbox stands well within this time, so that every moment of its making is hit.
fn longest() -> Duration {
    Duration::from_millis(match backend() {
        Backend::Native => 30,
        Backend::Crun | Backend::Runc => 100,
        Backend::Gvisor => 500,
    })
}

/// Whatever was killed, the program that was called ends within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// One of the processes of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Cli,
    Keeper,
    Supervisor,
    Init,
}

impl Target {
    const ALL: [Self; 4] = [Self::Cli, Self::Keeper, Self::Supervisor, Self::Init];

    /// Its process id on the host, as soon as there is one. Init is found while it still builds its walls.
    fn find(self, cli: i32) -> Option<i32> {
        let all = host_processes();
        let child = |parent: i32, is: &dyn Fn(&HostProcess) -> bool| {
            all.iter().find(|process| process.parent == parent && is(process)).map(|process| process.pid)
        };
        let is_supervisor = |process: &HostProcess| process.name == "agentbox-superv";
        let keeper = || child(cli, &|process| process.name == "agentbox-keeper");
        match self {
            Self::Cli => Some(cli),
            Self::Keeper => keeper(),
            Self::Supervisor => child(keeper()?, &is_supervisor),
            // The supervisor is forked under the keeper's name, too; only init begins a pid namespace.
            Self::Init => child(keeper()?, &|process| begins_pid_namespace(process)),
        }
    }
}

fn begins_pid_namespace(process: &HostProcess) -> bool {
    let status = std::fs::read_to_string(process.file("status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"))
}

/// A sandbox in a process group of its own, as a shell starts it.
fn start(sandbox: &Agentbox) -> Child {
    let mut command = sandbox.command(["/bin/sleep", "600"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).spawn().unwrap()
}

/// Waits for the program that was called: its exit code, 128+N for a signal, and what it said. `meanwhile` is given its id.
#[track_caller]
fn finish(mut child: Child, after: &str, meanwhile: impl Fn(i32)) -> (i32, String) {
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{after}: the program that was called goes on");
        }
        meanwhile(child.id().cast_signed());
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()), said)
}

callers_apart!(life_62_killed_at_any_moment, |caller| {
    let mut dice = Dice::throw(&format!("kill -9 as {caller:?}"));
    let rounds = if is_full() { 400 } else { 24 };
    let before = Remains::before(caller);
    for round in 0..rounds {
        let target = Target::ALL[round % Target::ALL.len()];
        let delay = dice.delay(longest());
        let after = format!("round {round}: kill -9 of the {target:?} after {delay:?}");
        let child = start(&Agentbox::shipped(caller));
        std::thread::sleep(delay);
        let deadline = Instant::now() + PATIENCE;
        let pid = loop {
            if let Some(pid) = target.find(child.id().cast_signed()) {
                break pid;
            }
            assert!(Instant::now() < deadline, "{after}: it never ran");
        };
        let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        let (code, said) = finish(child, &after, |cli| {
            // One that was begun early may turn out to be of no use to a backend; then another follows, which is init.
            if let Some(next) = target.find(cli).filter(|next| target == Target::Init && *next != pid) {
                let _ = kill_process(Pid::from_raw(next).unwrap(), Signal::KILL);
            }
        });
        match target {
            Target::Cli => assert_eq!(code, 137, "{after}: {said}"),
            _ => {
                assert_eq!(code, 125, "{after}: {said}");
                assert!(said.lines().any(|line| line.starts_with("error: ")), "{after}: {said}");
            }
        }
        before.next_command_cleans_up(caller, &after);
    }
});

callers_apart!(life_62_interrupted_at_any_moment, |caller| {
    let mut dice = Dice::throw(&format!("Ctrl-C as {caller:?}"));
    let rounds = if is_full() { 300 } else { 30 };
    let before = Remains::before(caller);
    for round in 0..rounds {
        let delay = dice.delay(longest());
        let after = format!("round {round}: Ctrl-C after {delay:?}");
        let child = start(&Agentbox::shipped(caller));
        std::thread::sleep(delay);
        kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
        let (code, said) = finish(child, &after, |_| {});
        // Before the program listens the signal ends it, afterwards it ends the command, or the keeper that has only
        // just been started.
        assert_eq!(code, 130, "{after}: {said}");
        before.next_command_cleans_up(caller, &after);
    }
});
