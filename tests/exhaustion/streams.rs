//! Exhaustion: 55. Output without end: the reader decides how fast it flows, and none of our processes holds more
//! than a little of it.

use std::io::Read as _;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use harness::{Agentbox, Caller, backend, callers, host_processes, is_full};
use policy::Backend;

/// What each of our processes may have held in memory at any time.
const LARGEST_KIB: u64 = 32 * 1024;

/// A sandbox whose output is read by the test alone.
struct Flood {
    child: Child,
    stdout: Option<ChildStdout>,
}

impl Flood {
    fn start(caller: Caller, script: &str) -> Self {
        let mut command = Agentbox::shipped(caller).command(["sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take();
        Self { child, stdout }
    }

    /// Reads so many bytes at most, and gives the number that came.
    fn read(&mut self, most: u64) -> u64 {
        let stdout = self.stdout.as_mut().unwrap();
        std::io::copy(&mut stdout.take(most), &mut std::io::sink()).unwrap()
    }

    /// The program that was called, the keeper, the supervisor and init, or the runtime that has it.
    fn ours(&self) -> Vec<i32> {
        let all = host_processes();
        let children = |parent: i32| all.iter().filter(move |it| it.parent == parent).map(|it| it.pid);
        let cli = self.child.id().cast_signed();
        children(cli).flat_map(|keeper| children(keeper).chain([keeper])).chain([cli]).collect()
    }

    /// Fails the test if one of ours has ever held too much.
    #[track_caller]
    fn assert_small(&self) {
        let ours = self.ours();
        assert_eq!(ours.len(), 4, "the sandbox does not run");
        for pid in ours {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            // What a runtime holds is its own affair, and counts as the sandbox's.
            let name = status.lines().next().and_then(|line| line.strip_prefix("Name:")).unwrap_or_default();
            if backend() != Backend::Native && !name.trim().starts_with("agentbox") {
                continue;
            }
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak: u64 =
                peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
            assert!(peak < LARGEST_KIB, "{peak} KiB: {status}");
        }
    }

    /// The reader leaves, and everything ends soon.
    #[track_caller]
    fn leave(mut self) {
        let ours = self.ours();
        drop(self.stdout.take());
        let start = Instant::now();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + 13), "as a shell reports a broken pipe");
        assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
        for pid in ours {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} goes on");
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines without end, and one line without end.
const ENDLESS: [&str; 2] = ["yes", "tr '\\0' x < /dev/zero"];

callers!(exhaustion_55_a_slow_reader, |caller| {
    for script in ENDLESS {
        let mut flood = Flood::start(caller, script);
        for _ in 0..40 {
            assert_eq!(flood.read(64 * 1024), 64 * 1024);
            std::thread::sleep(Duration::from_millis(25));
        }
        flood.assert_small();
        flood.leave();
    }
});

callers!(exhaustion_55_a_reader_that_leaves, |caller| {
    for script in ENDLESS {
        let mut flood = Flood::start(caller, script);
        assert_eq!(flood.read(1 << 20), 1 << 20);
        flood.leave();
    }
});

callers!(exhaustion_55_a_lot_of_output, |caller| {
    let gibibytes = if is_full() { 10 } else { 1 };
    // The sandbox stays until it is looked at.
    let mut flood = Flood::start(caller, &format!("head -c {gibibytes}G /dev/zero; sleep 600"));
    assert_eq!(flood.read(gibibytes << 30), gibibytes << 30);
    flood.assert_small();
});
