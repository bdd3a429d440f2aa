//! A caller with programs, a state and a runtime directory of its own, so that what is its own can be told from what
//! others have on the host at the same time. Root's runtime directory is everybody's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Agentbox, Caller, Finished, Running, binaries, cgroups, copy_program};
use serde_json::Value;
use tempfile::TempDir;

/// No command takes longer, whatever happens to it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the commands here may end with: well, refused, or by a signal, the command's own or theirs.
const CODES: [i32; 4] = [0, 125, 128 + 9, 128 + 15];

/// One caller's own part of the host.
pub(crate) struct Place {
    pub(crate) caller: Caller,
    directory: TempDir,
    /// Those that others had left when it was made.
    pub(crate) cgroups_before: Vec<PathBuf>,
}

impl Place {
    /// With the program as it ships.
    pub(crate) fn shipped(caller: Caller) -> Self {
        Self::with(caller, &binaries().shipped())
    }

    /// With the program that can be made to fail.
    pub(crate) fn weakened(caller: Caller) -> Self {
        Self::with(caller, &binaries().weakened())
    }

    fn with(caller: Caller, program: &Path) -> Self {
        let place = Self { caller, directory: caller.directory(), cgroups_before: cgroups() };
        for name in ["agentbox", "agentbox-init"] {
            assert!(copy_program(&program.with_file_name(name), &place.path(name)));
        }
        fs::create_dir(place.path("run")).unwrap();
        caller.own(&place.path("run"));
        harness::know_runtime(caller, &place.path("state"));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What all processes in its sandboxes have in their environment.
    pub(crate) fn token(&self) -> String {
        format!("AGENTBOX_TEST_PLACE={}", self.directory.path().display())
    }

    /// The runtime directories of its sandboxes; for root also of others'.
    pub(crate) fn runtime(&self) -> PathBuf {
        match self.caller {
            Caller::Root => PathBuf::from("/run/agentbox/sandboxes"),
            _ => self.path("run/agentbox/sandboxes"),
        }
    }

    /// What is kept of its sandboxes.
    pub(crate) fn kept(&self) -> PathBuf {
        self.path("state/sandboxes")
    }

    pub(crate) fn agentbox(&self) -> Agentbox {
        let variable = |name: &str| self.path(name).display().to_string();
        Agentbox::shipped(self.caller)
            .program(&self.path("agentbox"))
            .env("AGENTBOX_HOME", &variable("state"))
            .env("XDG_RUNTIME_DIR", &variable("run"))
    }

    /// Says something that may fail, but not anyhow.
    #[track_caller]
    pub(crate) fn try_say(&self, words: &[&str]) -> Finished {
        self.finish(self.agentbox().start_words(words), words)
    }

    /// Waits for the end of a command, for as long as any may take.
    #[track_caller]
    pub(crate) fn finish(&self, running: Running, words: &[&str]) -> Finished {
        let finished = running.finish_within(PATIENCE);
        let said = finished.stderr();
        assert!(CODES.contains(&finished.code), "{words:?} ended with {}: {said}", finished.code);
        assert!(!said.contains("panicked"), "{words:?}: {said}");
        assert!(finished.code != 125 || said.contains("error: "), "{words:?} was refused in silence");
        finished
    }

    /// Says something that has to succeed: its stdout.
    #[track_caller]
    pub(crate) fn say(&self, words: &[&str]) -> String {
        let finished = self.try_say(words);
        assert_eq!(finished.code, 0, "{words:?}: {}", finished.stderr());
        finished.stdout()
    }

    /// Makes a sandbox of this name: its id.
    #[track_caller]
    pub(crate) fn create(&self, name: &str) -> String {
        self.say(&["create", "--env", &self.token(), "--name", name]).trim().to_owned()
    }

    /// The list, whole. Those of which nothing is kept may be others'.
    #[track_caller]
    pub(crate) fn list(&self) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.say(&["ls", "--all", "--json"])).unwrap();
        list.as_array().unwrap().iter().filter(|entry| entry["kept"] != false).cloned().collect()
    }

    /// The state of the sandbox of this name, if it is listed.
    #[track_caller]
    pub(crate) fn state_of(&self, name: &str) -> Option<String> {
        let all = self.list();
        let found = all.iter().find(|entry| entry["name"] == name)?;
        Some(found["state"].as_str().unwrap().to_owned())
    }

    /// The kind of what is last on record of a sandbox. The record is whole.
    #[track_caller]
    pub(crate) fn last_recorded(&self, id: &str) -> String {
        self.say(&["audit", "--verify", id]);
        let record = self.say(&["audit", "--json", id]);
        let last: Value = serde_json::from_str(record.lines().last().unwrap_or_default()).unwrap();
        last["event"]["kind"].as_str().unwrap_or_else(|| panic!("{record}")).to_owned()
    }

    /// The ids of all of which there is a record. One that ended before its first has a log in which nothing is.
    pub(crate) fn recorded(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("state/audit")).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0));
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let listed = self.agentbox().start_words(&["ls", "--all", "--quiet"]).finish().stdout();
        for id in listed.lines().filter(|id| self.kept().join(id).exists()) {
            let _ = self.agentbox().start_words(&["rm", "--force", id]).finish();
        }
    }
}
