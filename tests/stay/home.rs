//! One caller with a state directory of its own, so that tests beside each other see only their own sandboxes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{Agentbox, Caller, Finished, Pty, Running};
use serde_json::Value;
use tempfile::TempDir;

/// A caller and its state. What is left of its sandboxes is removed when dropped.
pub(crate) struct Home {
    pub(crate) caller: Caller,
    state: TempDir,
}

impl Home {
    pub(crate) fn new(caller: Caller) -> Self {
        let home = Self { caller, state: caller.directory() };
        harness::know_runtime(caller, &home.state());
        home
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.state.path().join("state")
    }

    /// The directory of what is kept of a sandbox.
    pub(crate) fn kept(&self, id: &str) -> PathBuf {
        self.state().join("sandboxes").join(id)
    }

    fn agentbox(&self) -> Agentbox {
        Agentbox::shipped(self.caller).env("AGENTBOX_HOME", &self.state().display().to_string())
    }

    /// Says something to agentbox and waits for the end.
    #[track_caller]
    pub(crate) fn say(&self, words: &[&str]) -> Finished {
        self.begin(words).finish()
    }

    /// Says something to agentbox that takes a while.
    #[track_caller]
    pub(crate) fn begin(&self, words: &[&str]) -> Running {
        self.agentbox().start_words(words)
    }

    /// The same with something on stdin.
    #[track_caller]
    pub(crate) fn say_with(&self, stdin: &[u8], words: &[&str]) -> Finished {
        self.agentbox().stdin(stdin).start_words(words).finish()
    }

    /// The same by another program, to whose words agentbox's are added.
    #[track_caller]
    pub(crate) fn say_behind(&self, prefix: &[&str], words: &[&str]) -> Finished {
        self.agentbox().behind(prefix).start_words(words).finish()
    }

    /// Says something to agentbox on a terminal.
    pub(crate) fn pty(&self, words: &[&str]) -> Pty {
        Pty::start_words(self.agentbox(), words)
    }

    /// Waits until so many terminals are in use.
    #[track_caller]
    pub(crate) fn wait_for_terminals(&self, id: &str, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let said = self.say(&["terminals", "--json", id]);
            let list: Value = serde_json::from_slice(&said.assert_success().stdout).unwrap();
            if list.as_array().unwrap().len() == count {
                return;
            }
            assert!(Instant::now() < deadline, "{list}");
        }
    }

    /// Makes a sandbox: its id.
    #[track_caller]
    pub(crate) fn create(&self, options: &[&str]) -> String {
        let words = [&["create"], options].concat();
        self.say(&words).assert_success().stdout().trim().to_owned()
    }

    /// What runs inside.
    #[track_caller]
    pub(crate) fn listed(&self, id: &str) -> String {
        self.say(&["ps", id]).assert_success().stdout()
    }

    /// Runs a command in a sandbox to its end: its stdout.
    #[track_caller]
    pub(crate) fn exec(&self, id: &str, argv: &[&str]) -> String {
        let words = [&["exec", id, "--"], argv].concat();
        self.say(&words).assert_success().stdout()
    }

    /// The list, whole.
    #[track_caller]
    pub(crate) fn list(&self) -> Vec<Value> {
        let said = self.say(&["ls", "--all", "--json"]);
        let list: Value = serde_json::from_slice(&said.assert_success().stdout).unwrap();
        // Those that only run, of tests beside this one, are in everybody's list.
        list.as_array().unwrap().iter().filter(|entry| entry["kept"] != false).cloned().collect()
    }

    /// What the list says of one.
    #[track_caller]
    pub(crate) fn entry(&self, id: &str) -> Value {
        let all = self.list();
        let found = all.iter().find(|entry| entry["id"] == id);
        found.unwrap_or_else(|| panic!("{id} is not in {all:?}")).clone()
    }

    /// What the keeper has recorded.
    #[track_caller]
    pub(crate) fn status(&self, id: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.kept(id).join("status.json")).unwrap()).unwrap()
    }

    /// How many descriptors the supervisor holds.
    #[track_caller]
    pub(crate) fn held(&self, id: &str) -> usize {
        let supervisor = self.status(id)["supervisor"].as_i64().unwrap();
        std::fs::read_dir(format!("/proc/{supervisor}/fd")).map_or(0, Iterator::count)
    }

    /// A socket of a running sandbox.
    pub(crate) fn socket(&self, id: &str, name: &str) -> PathBuf {
        let runtime = match self.caller {
            Caller::Root => "/run/agentbox".to_owned(),
            Caller::Subordinate | Caller::Single => format!("/tmp/agentbox-{}", self.caller.uid()),
        };
        PathBuf::from(runtime).join("sandboxes").join(id).join(name)
    }

    /// Puts the state on a disk of its own that holds little.
    pub(crate) fn small_disk(&self) -> SmallDisk {
        let _ = std::fs::create_dir(self.state());
        let options = format!("size=128k,mode=700,uid={},gid={}", self.caller.uid(), self.caller.gid());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "agentbox-test"]).arg(self.state());
        assert!(mount.status().unwrap().success());
        SmallDisk(self.state())
    }

    /// Makes the caller's own directory one that cannot be written, or can again.
    pub(crate) fn set_mode(&self, path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// A file system that goes when dropped.
pub(crate) struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whatever still runs there holds it until it ends.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let listed = self.agentbox().start_words(&["ls", "--all", "--quiet"]).finish();
        for id in listed.stdout().lines().filter(|id| self.kept(id).exists()) {
            let mut command = self.agentbox().words(&["rm", "--force", id]);
            let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
