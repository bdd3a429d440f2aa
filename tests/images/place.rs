//! A caller with a store of its own, and what is put into it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use harness::{Agentbox, Caller, Finished, Running};
use images::Guard;
use policy::Backend;
use tempfile::TempDir;

use crate::layout::Layout;
use crate::tar::Tar;

/// What the tests run inside.
const PROGRAMS: [&str; 22] = [
    "sh", "ls", "cat", "id", "echo", "mkdir", "touch", "rm", "stat", "pwd", "env", "df", "dd", "mv", "test",
    "readlink", "head", "sleep", "find", "grep", "ln", "sort",
];

/// A caller's own part of the host.
pub(crate) struct Place {
    pub(crate) caller: Caller,
    directory: TempDir,
    build: Box<dyn Fn(Caller) -> Agentbox>,
}

impl Place {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller, directory: caller.directory(), build: Box::new(Agentbox::shipped) }
    }

    /// With the program that can be made to fail.
    pub(crate) fn weakened(caller: Caller) -> Self {
        Self::without(caller, &[])
    }

    /// With that program, and some of what keeps images where they belong taken away.
    pub(crate) fn without(caller: Caller, guards: &[Guard]) -> Self {
        let names = guards.iter().map(|guard| guard.name()).collect::<Vec<_>>().join(",");
        let build = move |caller| Agentbox::weakened(caller, &[]).env("AGENTBOX_WEAKEN", &names);
        Self { caller, directory: caller.directory(), build: Box::new(build) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("state/images")
    }

    pub(crate) fn agentbox(&self) -> Agentbox {
        self.with((self.build)(self.caller))
    }

    /// Another program with the same store.
    pub(crate) fn with(&self, agentbox: Agentbox) -> Agentbox {
        agentbox.env("AGENTBOX_HOME", &self.path("state").display().to_string())
    }

    pub(crate) fn start(&self, words: &[&str]) -> Running {
        self.agentbox().start_words(words)
    }

    #[track_caller]
    pub(crate) fn say(&self, words: &[&str]) -> Finished {
        self.start(words).finish()
    }

    /// Takes a layout in.
    #[track_caller]
    pub(crate) fn import(&self, layout: &Layout, name: &str) -> Finished {
        let path = self.path(&format!("layout-{}", name.replace([':', '/'], "-")));
        let _ = fs::remove_dir_all(&path);
        layout.write(&path);
        open_up(&path);
        self.say(&["image", "import", &path.display().to_string(), name])
    }

    /// Runs a script in an image, to its end and well.
    #[track_caller]
    pub(crate) fn run(&self, image: &str, script: &str) -> String {
        let run = self.agentbox().options(["--image", image]).run(["/bin/sh", "-c", script]);
        run.assert_success().stdout()
    }

    /// The names of unpacked layers, with what has no name yet.
    pub(crate) fn layers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().join("layers")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// What images there are, by name.
    pub(crate) fn images(&self) -> Vec<String> {
        let list = self.say(&["image", "ls", "--json"]).assert_success().stdout();
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let names =
            list.as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap_or("-").to_owned());
        names.collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Files of subuids are nobody's to remove but root's; tests as root can, and others ask the program.
        if !rustix::process::geteuid().is_root() {
            let images = self.images();
            images.iter().for_each(|image| drop(self.say(&["image", "rm", image])));
            drop(self.say(&["image", "gc"]));
        }
    }
}

/// Whether a test that starts no sandbox is to be run: natively, as it says the same of every backend.
#[track_caller]
pub(crate) fn is_once() -> bool {
    harness::is_on(&[Backend::Native], "it starts no sandbox")
}

/// A root file system without a libc.
pub(crate) fn busybox() -> Tar {
    let program = fs::read("/bin/busybox").unwrap();
    let mut tar = Tar::default().directory("bin/", 0o755, (0, 0)).program("bin/busybox", &program);
    for name in PROGRAMS {
        tar = tar.link(&format!("bin/{name}"), "busybox");
    }
    tar
}

/// Lets everybody read.
pub(crate) fn open_up(path: &Path) {
    let status = std::process::Command::new("chmod").args(["-R", "a+rX"]).arg(path).status();
    assert!(status.unwrap().success());
}

/// Everything beneath a directory: kind, mode, owner, size, inode, time of change.
pub(crate) fn seen(path: &Path) -> BTreeMap<PathBuf, [u64; 6]> {
    let mut waiting = vec![path.to_owned()];
    let mut all = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let change = (found.ctime() as u64) << 30 | found.ctime_nsec() as u64;
        let facts =
            [found.mode().into(), found.uid().into(), found.gid().into(), found.size(), found.ino(), change];
        all.insert(path, facts);
    }
    all
}
