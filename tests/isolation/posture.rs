//! Processes: 9, the posture of every process in a sandbox, as the host sees it, against golden files that were
//! written by hand from the design.

mod golden;
mod process;

use std::time::{Duration, Instant};

use harness::{
    Agentbox, Caller, HostProcess, Running, backend, breach, breach_all, callers, holds, host_processes,
    is_root,
};
use policy::{Backend, Wall};

pub(crate) use golden::{Golden, Values};
pub(crate) use process::Posture;

/// Starts children in every way a shell knows, and becomes another program. With job control a shell leaves stdin
/// and signals of what it starts in the background alone.
const SCRIPT: &str = "set -m
sleep 300 &
setsid sleep 301 &
setsid --fork sleep 302
echo started
exec sleep 303";

/// A shell of the caller's that leaves a file open for whoever it starts.
const HOLDING: [&str; 4] = ["/bin/sh", "-c", "exec 7</etc/hostname; exec \"$@\"", "sh"];

fn check(start: &dyn Fn() -> Agentbox) -> Result<(), String> {
    let sandbox = start();
    let caller = sandbox.caller();
    let running = sandbox.option("--report").behind(HOLDING).start(["bash", "-c", SCRIPT]);
    running.wait_for("started\n");
    running.wait_for_stderr("pids-limit");
    let found = settled(&running);
    let limited = running.stderr().lines().any(|line| line.starts_with("weaker    pids-limit"));
    let native = || {
        Golden::read(match caller {
            Caller::Root => "posture-root.txt",
            Caller::Subordinate => "posture-subordinate.txt",
            Caller::Single => "posture-single.txt",
        })
    };
    let golden = match backend() {
        Backend::Native => native(),
        Backend::Crun => native().but("posture-crun.txt"),
        Backend::Runc => native().but("posture-runc.txt"),
        Backend::Gvisor => Golden::read("posture-gvisor.txt"),
    };
    let mut differences = Vec::new();
    for (index, pid) in found.iter().enumerate() {
        let posture = match backend() {
            // What it has open is what is open inside, and comes and goes.
            Backend::Gvisor => Posture::of(*pid).without("descriptor"),
            _ => Posture::of(*pid),
        };
        let values = Values::of(caller, &posture, limited && backend() != Backend::Gvisor);
        let role = if index == 0 { "first process" } else { "child" };
        differences
            .extend(golden.compare(&posture, &values).into_iter().map(|line| format!("{role}: {line}")));
    }
    let most = if backend() == Backend::Gvisor { 1 } else { 4 };
    assert!(found.len() >= most || !differences.is_empty(), "only {found:?} were found");
    crate::none_of("posture", differences.iter().map(String::as_str).take(5))
}

/// Where a process that sleeps waits; before that, `sleep` still reads its locale.
const SLEEPING: libc::c_long = libc::SYS_clock_nanosleep;

/// The first process and its children, once each has become its last program and that has come to rest.
fn settled(running: &Running) -> Vec<i32> {
    let processes = running.processes();
    if backend() == Backend::Gvisor {
        return vec![processes.init];
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let mut found = vec![HostProcess::read(processes.command).expect("the command runs")];
        found.extend(
            descendants(processes.init).into_iter().filter(|process| process.pid != processes.command),
        );
        let all = found.len() >= 4 && found.iter().all(|process| process.syscall() == Some(SLEEPING));
        if all || Instant::now() > deadline {
            return found.iter().map(|process| process.pid).collect();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything below a process.
fn descendants(parent: i32) -> Vec<HostProcess> {
    let all = host_processes();
    let mut found: Vec<HostProcess> = Vec::new();
    let mut waiting = vec![parent];
    while let Some(parent) = waiting.pop() {
        for process in all.iter().filter(|process| process.parent == parent && process.state != 'Z') {
            waiting.push(process.pid);
            found.push(process.clone());
        }
    }
    found
}

callers!(processes_09_posture, |caller| {
    if !is_root("look at every side of another process") {
        return;
    }
    holds(caller, &check);
    if backend() == Backend::Gvisor {
        // It puts every one of these walls around itself once more, whatever stands around it.
        return;
    }
    for wall in [
        Wall::MountNamespace,
        Wall::PidNamespace,
        Wall::NetNamespace,
        Wall::IpcNamespace,
        Wall::UtsNamespace,
        Wall::CgroupNamespace,
        Wall::Capabilities,
        Wall::Seccomp,
        Wall::Descriptors,
    ] {
        breach(caller, wall, &check);
    }
    breach_all(caller, &[Wall::NoNewPrivileges, Wall::Seccomp, Wall::Landlock], &check);
    if caller == Caller::Root {
        breach(caller, Wall::UserNamespace, &check);
    }
    if caller != Caller::Single {
        breach(caller, Wall::NonRoot, &check);
    }
});
