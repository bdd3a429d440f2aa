//! A project of a caller's, with a state directory of its own, and what of the project the host sees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use harness::{Agentbox, Caller, Finished};
use tempfile::TempDir;

/// A directory of a caller's to work on.
pub(crate) struct Project {
    pub(crate) caller: Caller,
    place: TempDir,
}

impl Project {
    /// An empty one, which is no repository.
    pub(crate) fn empty(caller: Caller) -> Self {
        let project = Self { caller, place: caller.directory() };
        harness::know_runtime(caller, &project.state());
        project.directory("project");
        project
    }

    /// A repository with one commit: two files in two directories.
    pub(crate) fn repository(caller: Caller) -> Self {
        let project = Self::empty(caller);
        project.git(&["init", "-q", "-b", "main", "."]);
        project.identify(".");
        project.write("readme", "one\n");
        project.write("src/deep/main.c", "int main;\n");
        project.git(&["add", "."]);
        project.git(&["commit", "-qm", "first"]);
        project
    }

    /// The directory of everything.
    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place().join("project")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.place().join("state")
    }

    fn directory(&self, name: &str) {
        let path = self.place().join(name);
        fs::create_dir(&path).unwrap();
        self.caller.own(&path);
    }

    /// A file of the owner's, with the directories above it.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        self.write_at(&self.path().join(name), contents);
    }

    pub(crate) fn write_at(&self, path: &Path, contents: impl AsRef<[u8]>) {
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|above| !above.exists()).collect();
        for directory in missing.into_iter().rev() {
            fs::create_dir(directory).unwrap();
            self.caller.own(directory);
        }
        fs::write(path, contents).unwrap();
        self.caller.own(path);
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        let path = self.path().join(name);
        symlink(target, &path).unwrap();
        lchown(&path, Some(self.caller.uid()), Some(self.caller.gid())).unwrap();
    }

    /// git as the owner runs it in the project.
    #[track_caller]
    pub(crate) fn git(&self, words: &[&str]) -> String {
        self.git_in(".", words)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, below: &str, words: &[&str]) -> String {
        let mut command = self.caller.command(Path::new("/usr/bin/git"));
        command.arg("-C").arg(self.path().join(below)).args(["-c", "protocol.file.allow=always"]).args(words);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn identify(&self, below: &str) {
        self.git_in(below, &["config", "user.name", "Ann Other"]);
        self.git_in(below, &["config", "user.email", "ann@example.org"]);
    }

    pub(crate) fn agentbox(&self) -> Agentbox {
        self.with_state(Agentbox::shipped(self.caller))
    }

    /// Another build of the program, with this project's state.
    pub(crate) fn with_state(&self, agentbox: Agentbox) -> Agentbox {
        agentbox.env("AGENTBOX_HOME", &self.state().display().to_string())
    }

    /// The same for a caller with another home directory.
    pub(crate) fn at_home_in(&self, home: &Path) -> Agentbox {
        let home = home.display().to_string();
        match self.caller {
            // Root's is set by whoever starts it.
            Caller::Root => self.agentbox().behind(["/usr/bin/env", &format!("HOME={home}")]),
            Caller::Subordinate | Caller::Single => self.agentbox().env("HOME", &home),
        }
    }

    /// Says something to agentbox and waits for the end.
    #[track_caller]
    pub(crate) fn say(&self, words: &[&str]) -> Finished {
        self.agentbox().start_words(words).finish()
    }

    /// Runs a script inside, on the project: its stdout.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> String {
        self.run_with(&[], script).assert_success().stdout()
    }

    #[track_caller]
    pub(crate) fn run_with(&self, options: &[&str], script: &str) -> Finished {
        let workspace = self.path().display().to_string();
        let options = [&["--workspace", workspace.as_str()], options].concat();
        self.agentbox().options(options).run(["sh", "-c", script])
    }

    /// Runs a script inside that works on the project itself.
    #[track_caller]
    pub(crate) fn direct(&self, options: &[&str], script: &str) -> Finished {
        self.direct_by(self.agentbox(), options, script)
    }

    /// The same by another build of the program.
    #[track_caller]
    pub(crate) fn direct_by(&self, agentbox: Agentbox, options: &[&str], script: &str) -> Finished {
        let workspace = format!("{}:direct", self.path().display());
        let options = [&["--workspace", workspace.as_str()], options].concat();
        agentbox.options(options).run(["sh", "-c", script])
    }

    /// Everything that the host sees of the repositories in the project; of the first, not when it was last locked.
    pub(crate) fn seen_of_git(&self) -> BTreeMap<PathBuf, String> {
        let own = self.path().join(".git");
        let is_git = |path: &Path| path != own && path.iter().any(|part| part == ".git");
        self.seen().into_iter().filter(|(path, _)| is_git(path)).collect()
    }

    /// The ids of sandboxes that are on file.
    pub(crate) fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.state().join("sandboxes")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// The directory of the one sandbox that is on file.
    #[track_caller]
    pub(crate) fn only(&self) -> PathBuf {
        let kept = self.kept();
        assert_eq!(kept.len(), 1, "{kept:?}");
        self.state().join("sandboxes").join(&kept[0])
    }

    /// Everything that the host sees of the project, the pin left out.
    pub(crate) fn seen(&self) -> BTreeMap<PathBuf, String> {
        seen(&self.path())
    }
}

/// Every entry of a tree: kind, mode, owner, size, times and contents.
pub(crate) fn seen(tree: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![tree.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.ends_with(".git/refs/agentbox") {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let (mode, uid, gid, size) = (metadata.mode(), metadata.uid(), metadata.gid(), metadata.size());
        let contents = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        // The pin is made in a directory of its own there.
        let times = if path.ends_with(".git/refs") {
            String::new()
        } else {
            format!(
                "{}.{} {}.{}",
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec()
            )
        };
        let line = format!("{mode:o} {uid}:{gid} {size} {times} {}", contents.escape_ascii());
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, line);
    }
    found
}

/// Fails with what differs.
#[track_caller]
pub(crate) fn assert_same(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) {
    let changed: Vec<_> = before.iter().filter(|(path, line)| after.get(*path) != Some(line)).collect();
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(changed.is_empty() && new.is_empty(), "changed: {changed:?}, new: {new:?}");
}

/// The same once the pin is gone: to remove it git has locked its refs for a moment, by a file beside them.
#[track_caller]
pub(crate) fn assert_same_but_locks(project: &Project, before: &BTreeMap<PathBuf, String>) {
    let (mut before, mut after) = (before.clone(), project.seen());
    for seen in [&mut before, &mut after] {
        seen.remove(&project.path().join(".git"));
    }
    assert_same(&before, &after);
}

impl Drop for Project {
    fn drop(&mut self) {
        for id in self.kept() {
            let mut command = self.agentbox().words(&["rm", "--force", &id]);
            let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
