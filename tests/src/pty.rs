//! A terminal with agentbox on it: what a person sees, types and does to the window.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::Agentbox;

/// Nothing that a test waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of agentbox on a terminal of its own; it is killed when dropped.
#[derive(Debug)]
pub struct Pty {
    master: File,
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    before: Termios,
}

impl Pty {
    /// Starts a command on a new terminal of 24 rows and 80 columns.
    #[must_use]
    pub fn start(agentbox: Agentbox, argv: &[&str]) -> Self {
        Self::begin(agentbox, |agentbox| agentbox.command(argv))
    }

    /// The same with any other words.
    #[must_use]
    pub fn start_words(agentbox: Agentbox, words: &[&str]) -> Self {
        Self::begin(agentbox, |agentbox| agentbox.words(words))
    }

    fn begin(agentbox: Agentbox, command: impl FnOnce(&Agentbox) -> Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        set_size(&master, 24, 80);
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || {
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
            Stdio::from(rustix::fs::open(&*name, flags, rustix::fs::Mode::empty()).unwrap())
        };
        let before = tcgetattr(&master).unwrap();
        // Becomes what it starts, in a session of its own with the terminal as the controlling one.
        let agentbox = agentbox.env("TERM", "xterm-256color").behind(["/usr/bin/setsid", "--ctty"]);
        let mut command = command(&agentbox);
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        drop(command);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (theirs, mut reader) = (Arc::clone(&seen), File::from(master.try_clone().unwrap()));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                theirs.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { master: File::from(master), child, seen, before }
    }

    /// All that the terminal was sent.
    #[must_use]
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until something is so.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "never: {what}; the terminal shows:\n{}", self.seen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the terminal has been sent a text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text:?}"), |pty| pty.seen().contains(text));
    }

    /// Types.
    pub fn type_keys(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the window.
    pub fn resize(&self, rows: u16, columns: u16) {
        set_size(&self.master, rows, columns);
    }

    /// Whether keys go through untouched.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.master).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Whether all settings are as they were before agentbox started.
    #[must_use]
    pub fn is_as_before(&self) -> bool {
        let now = tcgetattr(&self.master).unwrap();
        let modes = |termios: &Termios| {
            (termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes)
        };
        modes(&now) == modes(&self.before)
            && format!("{:?}", now.special_codes) == format!("{:?}", self.before.special_codes)
    }

    /// Sends a signal to agentbox.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The state of agentbox as the kernel names it: `S` sleeps, `T` is stopped.
    #[must_use]
    pub fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    /// Waits for the end: the exit code. The terminal is as it was before.
    #[track_caller]
    pub fn finish(&mut self) -> i32 {
        let code = self.wait_for_end();
        assert!(self.is_as_before(), "the terminal was not given back");
        code
    }

    /// Waits for the end of one that may have been killed: the exit code, or -1.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it does not end; the terminal shows:\n{}", self.seen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn set_size(master: impl AsFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

impl Drop for Pty {
    /// A command on a terminal outlives whoever looks at it, unless it is told to end; the third time it is killed.
    fn drop(&mut self) {
        for _ in 0..3 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
