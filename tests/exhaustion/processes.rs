//! Exhaustion: 52. Bombs of processes and threads.

use std::time::{Duration, Instant};

use harness::{
    Agentbox, Caller, HOST_KERNEL, backend, callers, callers_alone, host_processes, is_on, stands,
};
use policy::{Backend, Wall};

use crate::assert_host_forks;

/// The limit of these sandboxes, and more than anything here has to start.
const LIMIT: usize = 64;
const MANY: usize = 400;

/// How many there may be in fact: a runtime has threads of its own in the same cgroup, of which nobody knows how many they are,
/// and the report says how many more may be started.
fn most(caller: Caller) -> usize {
    match backend() {
        // It counts for each user, and init is another where there is one.
        Backend::Gvisor if caller != Caller::Single => LIMIT + 1,
        _ if caller == Caller::Root => LIMIT + runtime_threads(),
        _ => LIMIT,
    }
}

/// How many a cgroup has room for beside those inside.
pub(crate) fn runtime_threads() -> usize {
    match backend() {
        Backend::Native => 0,
        Backend::Gvisor => 1,
        Backend::Crun => 4,
        Backend::Runc => 64,
    }
}

/// Forks until it is refused, and prints how often it was not.
const FORKS: &str = "my $n = 0;
    for (1 .. $ARGV[0]) {
        my $pid = fork;
        last unless defined $pid;
        if (!$pid) { sleep 60; exit }
        $n++;
    }
    print $n;";

/// The same with threads.
const THREADS: &str = "import sys, threading, time
n = 0
try:
    for n in range(int(sys.argv[1])):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError:
    pass
print(n, end='', flush=True)
__import__('os')._exit(0)";

/// An error if more were started than the limit allows.
fn is_bounded(what: &str, sandbox: Agentbox, words: [&str; 3]) -> Result<(), String> {
    let most = most(sandbox.caller());
    let many = MANY.to_string();
    let finished = sandbox.options(["--pids", &LIMIT.to_string()]).run(words.into_iter().chain([&*many]));
    let count: usize = finished.assert_success().stdout().trim().parse().unwrap();
    assert!(count > LIMIT / 2, "only {count} {what} could be started");
    if count < most { Ok(()) } else { Err(format!("{count} {what} with a limit of {LIMIT}")) }
}

callers!(exhaustion_52_processes_are_bounded, |caller| {
    stands(caller, Wall::PidsLimit, &|start| {
        is_bounded("processes", start(), ["/usr/bin/perl", "-e", FORKS])
    });
});

callers!(exhaustion_52_threads_are_bounded, |caller| {
    stands(caller, Wall::PidsLimit, &|start| {
        is_bounded("threads", start(), ["/usr/bin/python3", "-c", THREADS])
    });
});

callers_alone!(exhaustion_52_a_bomb_hurts_no_neighbour, |caller| {
    let mut neighbour = Agentbox::shipped(caller).start(["cat"]);
    neighbour.write(b"before\n");
    neighbour.wait_for("before\n");
    // The classic, which never stops by itself.
    let bomb = Agentbox::shipped(caller).options(["--pids", &LIMIT.to_string(), "--cpus", "1"]).start([
        "bash",
        "-c",
        "bomb() { bomb | bomb & }; bomb; sleep 600",
    ]);
    let processes = bomb.processes();
    let is_seen = is_on(HOST_KERNEL, "how many there are the host does not see");
    let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", processes.init)).unwrap();
    let (mut most, mut slowest) = (0, Duration::ZERO);
    for round in 0..40 {
        let inside =
            |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok().as_ref() == Some(&namespace);
        most = most.max(host_processes().iter().filter(|process| inside(process.pid)).count());
        assert_host_forks(caller);
        let start = Instant::now();
        let line = format!("round {round}\n");
        neighbour.write(line.as_bytes());
        neighbour.wait_for(&line);
        slowest = slowest.max(start.elapsed());
    }
    if is_seen {
        assert!(most > LIMIT / 2, "it was no bomb: {most} processes");
        // Init is root inside, where there is one, and does not count among the processes of the agent's.
        assert!(most <= self::most(caller) + 1, "{most} processes with a limit of {LIMIT}");
    }
    assert!(slowest < Duration::from_secs(2), "the neighbour needs {slowest:?} to answer");
    Agentbox::shipped(caller).run(["/bin/true"]).assert_success();
    drop(bomb);
    neighbour.finish().assert_success();
    // The bomb ends with its sandbox.
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::path::Path::new(&format!("/proc/{}", processes.init)).exists() {
        assert!(Instant::now() < deadline, "the bomb goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
});
