//! Runs a real program on a terminal and keeps what it writes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use screen::Size;

/// A program has answered when it has been quiet for this long.
const QUIET: Duration = Duration::from_millis(150);
/// It is not waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a program is run as.
pub(crate) struct Run<'a> {
    pub(crate) argv: &'a [&'a str],
    /// Typed one after the other, each when the program is quiet.
    pub(crate) keys: &'a [&'a str],
    pub(crate) size: Size,
    pub(crate) term: &'a str,
}

/// All that a program writes while it is typed to; None where it is not installed.
pub(crate) fn record(run: &Run<'_>) -> Option<Vec<u8>> {
    let program = run.argv[0];
    let is_there = |directory| std::path::Path::new(&directory).join(program).exists();
    let path = std::env::var("PATH").unwrap();
    if !path.split(':').any(is_there) {
        println!("skipped: {program} is not installed");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let size = Winsize { ws_row: run.size.rows, ws_col: run.size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let side = || {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Stdio::from(open(&*name, flags, Mode::empty()).unwrap())
    };
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).args(run.argv).env_clear().current_dir(home.path());
    command.envs([("PATH", path.as_str()), ("TERM", run.term), ("LANG", "C.UTF-8"), ("PS1", "$ ")]);
    command.env("HOME", home.path()).env("TMUX_TMPDIR", home.path());
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    drop(command);
    let (sender, receiver) = channel();
    let mut master = File::from(master);
    let mut reader = master.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut seen = Vec::new();
    let mut is_over = collect(&receiver, &mut seen);
    for keys in run.keys {
        if is_over {
            break;
        }
        master.write_all(keys.as_bytes()).unwrap();
        is_over = collect(&receiver, &mut seen);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if program == "tmux" {
        // Its server outlives it.
        let end = ["-L", run.argv[2], "kill-server"];
        assert!(Command::new(program).args(end).env("TMUX_TMPDIR", home.path()).status().unwrap().success());
    }
    assert!(!seen.is_empty(), "{program} wrote nothing");
    Some(seen)
}

/// Takes what comes until it is quiet; true when nothing more can come.
fn collect(receiver: &Receiver<Vec<u8>>, seen: &mut Vec<u8>) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match receiver.recv_timeout(QUIET) {
            Ok(bytes) => seen.extend(bytes),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
    false
}
