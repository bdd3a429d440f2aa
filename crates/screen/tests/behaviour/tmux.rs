//! A viewer with a real terminal: tmux, which is one for what runs inside it and can be asked what it shows.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use screen::{Screen, Size};
use tempfile::TempDir;

use crate::cuts::Dice;
use crate::recording::{Run, record};

const SIZE: Size = Size { rows: 24, columns: 80 };
/// Places at which each program's output is cut.
const CUTS: usize = 6;
/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Everything that tmux tells of a terminal beside its cells.
const STATE: &str = "#{cursor_x},#{cursor_y} visible #{cursor_flag} alternate #{alternate_on} saved \
    #{alternate_saved_x},#{alternate_saved_y} insert #{insert_flag} keys #{keypad_cursor_flag} #{keypad_flag} mouse \
    #{mouse_any_flag} #{mouse_button_flag} #{mouse_standard_flag} #{mouse_sgr_flag} #{mouse_utf8_flag} origin \
    #{origin_flag} wrap #{wrap_flag} region #{scroll_region_upper} #{scroll_region_lower} tabs #{pane_tabs} title \
    #{pane_title}";

fn tmux(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tmux");
    command.args(["-L", "viewer", "-f", "/dev/null"]).args(arguments).stdin(Stdio::null());
    let output =
        command.env_remove("TMUX").env("TMUX_TMPDIR", directory).env("LANG", "C.UTF-8").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server of tmux's, which ends with the test.
struct Server(TempDir);

impl Drop for Server {
    fn drop(&mut self) {
        tmux(self.0.path(), &["kill-server"]);
    }
}

/// What tmux shows, and all that it tells, after it has been sent a stream. Its text only: how cells look it tells
/// in different ways for written and for erased spaces, which cannot be seen.
fn shown(stream: &[u8]) -> String {
    let directory = TempDir::new().unwrap();
    let (file, done) = (directory.path().join("stream"), directory.path().join("done"));
    std::fs::write(&file, stream).unwrap();
    let script = format!("stty raw -echo; cat {}; touch {}; sleep 1000", file.display(), done.display());
    let (columns, rows) = (SIZE.columns.to_string(), SIZE.rows.to_string());
    let start = [
        "start-server",
        ";",
        "set",
        "-g",
        "status",
        "off",
        ";",
        "set",
        "-g",
        "default-terminal",
        "xterm",
        ";",
    ];
    let session = ["new-session", "-d", "-x", &columns, "-y", &rows, &script];
    tmux(directory.path(), &[start.as_slice(), &session].concat());
    let server = Server(directory);
    let deadline = Instant::now() + PATIENCE;
    while !done.exists() {
        assert!(Instant::now() < deadline, "the stream was not taken");
        std::thread::sleep(Duration::from_millis(5));
    }
    // What cat has written may still be on its way; it has come when nothing changes any more.
    let mut before = String::new();
    loop {
        let now = tmux(server.0.path(), &["display-message", "-p", STATE, ";", "capture-pane", "-p"]);
        if now == before {
            return now;
        }
        assert!(Instant::now() < deadline, "the terminal does not come to rest");
        before = now;
        std::thread::sleep(Duration::from_millis(60));
    }
}

/// Cuts what a program wrote and compares who came late with who was always there, at the cut and at the end.
fn check_program(argv: &[&str], keys: &[&str]) {
    let Some(stream) = record(&Run { argv, keys, size: SIZE, term: "xterm-256color" }) else { return };
    let first = Screen::new(SIZE).restore();
    let mut dice = Dice::new(u64::try_from(stream.len()).unwrap());
    for _ in 0..CUTS {
        let at = dice.below(stream.len() + 1);
        let (before, after) = stream.split_at(at);
        let mut screen = Screen::new(SIZE);
        screen.feed(before);
        let restored = screen.restore();
        let context = stream[at.saturating_sub(60)..at].escape_ascii().to_string();
        let (early, late) = (shown(&[first.as_slice(), before].concat()), shown(&restored));
        assert_eq!(early, late, "{argv:?} at the cut, after {context}");
        let early = shown(&[first.as_slice(), before, after].concat());
        let late = shown(&[restored.as_slice(), after].concat());
        assert_eq!(early, late, "{argv:?} at the end, after {context}");
    }
}

fn is_installed() -> bool {
    let is_there = Command::new("tmux").arg("-V").output().is_ok();
    if !is_there {
        println!("skipped: tmux is not installed");
    }
    is_there
}

#[test]
fn a_shell_in_tmux() {
    if is_installed() {
        check_program(
            &["bash", "--norc"],
            &[
                "ls --color=always -l /\r",
                "printf '漢字 e\\xcc\\x81 \\033[4;38;2;9;99;200mcolour\\033[0m'\r",
                "echo x\x01y",
            ],
        );
    }
}

#[test]
fn vim_in_tmux() {
    if is_installed() {
        let keys = [":set nu title mouse=a\r", "ihello\rworld\x1b", ":vsplit\r", "ggvj", "\x1b:qa!\r"];
        check_program(&["vim", "-u", "NONE", "-N"], &keys);
    }
}

#[test]
fn htop_in_tmux() {
    if is_installed() {
        check_program(&["htop", "-d", "5"], &["t", "q"]);
    }
}
