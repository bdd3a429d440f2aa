//! Full-screen programs in a real terminal emulator: what they draw, and that they take keys.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use harness::{Agentbox, Caller, callers};

const ROWS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(60);

/// A window of tmux with agentbox in it; it goes when dropped.
struct Screen {
    caller: Caller,
    directory: tempfile::TempDir,
}

impl Screen {
    fn start(caller: Caller, argv: &[&str]) -> Self {
        let screen = Self { caller, directory: caller.directory() };
        // The server is the caller's own, so the words that make us the caller are not needed inside.
        let command = Agentbox::shipped(Caller::Root).command(argv);
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''")))
            .collect();
        let shell = format!("{}; echo \"code $?\"; sleep 1000", words.join(" "));
        let started = screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", &shell]);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        screen
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let socket = self.directory.path().join("tmux");
        let variables = [("PATH".to_owned(), harness::path())];
        let mut command = self.caller.command_behind(&[], Path::new("/usr/bin/tmux"), &variables);
        command.arg("-u").arg("-S").arg(socket).args(words).output().unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys"];
        words.extend(keys);
        assert!(self.tmux(&words).status.success());
    }

    /// The rows of the window.
    fn rows(&self) -> Vec<String> {
        let text = String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.rows()) {
            assert!(
                Instant::now() < deadline,
                "never: {what}; the screen shows:\n{}",
                self.rows().join("\n")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        self.wait_until(text, |rows| rows.iter().any(|row| row.contains(text)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

callers!(vim, |caller| {
    let script = "vim -u NONE note; echo \"saved: $(cat note)\"";
    let screen = Screen::start(caller, &["sh", "-c", script]);
    screen.wait_until("an empty screen of vim", |rows| {
        rows.iter().filter(|row| row.starts_with('~')).count() >= ROWS - 3 && rows[ROWS - 1].contains("note")
    });
    screen.keys(&["i", "written inside", "Enter", "second line", "Escape"]);
    screen.wait_until("the text", |rows| rows[0] == "written inside" && rows[1] == "second line");
    screen.keys(&[":wq", "Enter"]);
    screen.wait_for("saved: written inside");
    screen.wait_for("code 0");
});

callers!(htop, |caller| {
    let screen = Screen::start(caller, &["htop"]);
    screen.wait_until("a full screen of htop", |rows| {
        rows.iter().any(|row| row.contains("PID") && row.contains("Command"))
            && rows.last().is_some_and(|row| row.contains("Help") && row.contains("Quit"))
    });
    // Only what is inside is listed.
    assert!(screen.rows().iter().any(|row| row.contains("/.agentbox/in")), "{:?}", screen.rows());
    screen.keys(&["q"]);
    screen.wait_for("code 0");
});

callers!(tmux_in_tmux, |caller| {
    let screen = Screen::start(caller, &["tmux", "-u", "-f", "/dev/null", "new-session", "sh"]);
    screen.wait_until("its status line", |rows| rows.last().is_some_and(|row| row.starts_with("[0] 0:sh")));
    screen.keys(&["echo $((6 * 7)) from within", "Enter"]);
    screen.wait_for("42 from within");
    // Two windows inside, by keys that only the inner one takes.
    screen.keys(&["C-b", "%"]);
    screen.wait_until("a split", |rows| rows.iter().filter(|row| row.contains('│')).count() >= ROWS - 2);
    screen.keys(&["exit", "Enter"]);
    screen.wait_until("one pane again", |rows| rows.iter().all(|row| !row.contains('│')));
    screen.keys(&["exit", "Enter"]);
    screen.wait_for("code 0");
});
