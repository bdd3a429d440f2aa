//! A run that goes on, and the processes behind it.

use std::io::{Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use policy::Backend;

use crate::{Finished, HostProcess, backend, host_processes};

/// Where init stands inside.
const INIT: &str = "/.agentbox/init";

/// Nothing that a test starts takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run of agentbox that has not ended; it is killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// What the command reads; dropping it is end-of-file.
    pub stdin: Option<ChildStdin>,
    stdout: Collector,
    stderr: Collector,
}

/// The processes of one sandbox, by their ids on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// The program that was called.
    pub cli: i32,
    /// The keeper.
    pub keeper: i32,
    /// The supervisor.
    pub supervisor: i32,
    /// PID 1 inside.
    pub init: i32,
    /// The first process that init started.
    pub command: i32,
}

impl Running {
    pub(crate) fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        let stdout = Collector::start(child.stdout.take().unwrap());
        let stderr = Collector::start(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr }
    }

    /// The process id of the program that was called.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// What it has written so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has written there so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until stdout holds a text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let seen = self.stdout.wait_for(text);
        assert!(seen, "'{text}' was never written\nstdout: {}\nstderr: {}", self.stdout(), self.stderr());
    }

    /// Waits until stderr holds a text.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        let seen = self.stderr.wait_for(text);
        assert!(seen, "'{text}' was never written\nstdout: {}\nstderr: {}", self.stdout(), self.stderr());
    }

    /// Types something.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    /// Waits until the command runs, and tells all processes of the sandbox.
    #[track_caller]
    #[must_use]
    pub fn processes(&self) -> Processes {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(processes) = self.find_processes() {
                return processes;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the command never ran\nstdout: {}\nstderr: {}", self.stdout(), self.stderr());
    }

    fn find_processes(&self) -> Option<Processes> {
        let all = host_processes();
        let child = |parent: i32, is: &dyn Fn(&HostProcess) -> bool| {
            all.iter().find(|process| process.parent == parent && is(process)).map(|process| process.pid)
        };
        let word = |at: usize, word: &'static str| {
            move |process: &HostProcess| process.arguments.get(at).is_some_and(|argument| argument == word)
        };
        let cli = self.pid();
        // The kernel cuts names off after fifteen letters.
        let named =
            |name: &'static str| move |process: &HostProcess| process.name == name[..name.len().min(15)];
        let keeper = child(cli, &named("agentbox-keeper"))?;
        let supervisor = child(keeper, &named("agentbox-supervisor"))?;
        let first = match backend().program() {
            None => child(keeper, &word(0, INIT))?,
            Some(runtime) => child(keeper, &word(0, runtime))?,
        };
        let below = |name: &'static str| {
            let is_below = |process: &&HostProcess| {
                let parent =
                    |pid: i32| all.iter().find(|process| process.pid == pid).map(|process| process.parent);
                std::iter::successors(Some(process.parent), |pid| parent(*pid)).any(|pid| pid == first)
            };
            all.iter().filter(is_below).find(|process| word(0, name)(process)).map(|process| process.pid)
        };
        let init = match backend() {
            Backend::Native => first,
            Backend::Crun | Backend::Runc => below(INIT)?,
            // What runs inside is none of the host's processes: its kernel is all that the host sees of it.
            Backend::Gvisor => {
                let kernel = below("runsc-sandbox")?;
                return Some(Processes { cli, keeper, supervisor, init: kernel, command: kernel });
            }
        };
        // A process that has not become its program yet still has init's arguments.
        let started = |process: &HostProcess| !word(0, INIT)(process) && process.state != 'Z';
        let command = child(init, &started)?;
        Some(Processes { cli, keeper, supervisor, init, command })
    }

    /// Sends a signal to the program that was called.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the program has ended, without waiting for it.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end; end-of-file on stdin, if it is still open.
    #[track_caller]
    #[must_use]
    pub fn finish(self) -> Finished {
        self.finish_within(PATIENCE)
    }

    /// The same, for a command that must not take longer than that.
    #[track_caller]
    #[must_use]
    pub fn finish_within(mut self, patience: Duration) -> Finished {
        drop(self.stdin.take());
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let limit = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: 0 };
        let mut descriptors = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        let ended = loop {
            match poll(&mut descriptors, Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                ended => break ended.unwrap(),
            }
        };
        assert!(ended == 1, "it hangs\nstdout: {}\nstderr: {}", self.stdout(), self.stderr());
        let status = self.child.wait().unwrap();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Finished { code, stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What has come so far.
#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    ended: bool,
}

/// Reads a stream in a thread of its own, so that no command ever waits for its test.
#[derive(Debug)]
struct Collector {
    shared: Arc<(Mutex<Collected>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn start(mut stream: impl Read + Send + 'static) -> Self {
        let shared = Arc::new((Mutex::new(Collected::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                theirs.0.lock().unwrap().bytes.extend_from_slice(&buffer[..count]);
                theirs.1.notify_all();
            }
            theirs.0.lock().unwrap().ended = true;
            theirs.1.notify_all();
        });
        Self { shared, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.0.lock().unwrap().bytes).into_owned()
    }

    fn wait_for(&self, text: &str) -> bool {
        let collected = self.shared.0.lock().unwrap();
        let has = |collected: &Collected| String::from_utf8_lossy(&collected.bytes).contains(text);
        let goes_on = |collected: &mut Collected| !has(collected) && !collected.ended;
        let (collected, _) = self.shared.1.wait_timeout_while(collected, PATIENCE, goes_on).unwrap();
        has(&collected)
    }

    /// All of it, once the stream has ended.
    fn finish(&mut self) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        std::mem::take(&mut self.shared.0.lock().unwrap().bytes)
    }
}
