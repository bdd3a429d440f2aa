//! An owner's directory and the files of a sandbox over it, with a layer that is written as an overlay would write it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use workspace::{Files, Head, Order, Recorded, Repository};

pub(crate) struct Place {
    root: tempfile::TempDir,
}

/// A path from text or from bytes.
pub(crate) fn path(bytes: impl AsRef<[u8]>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes.as_ref()))
}

impl Place {
    /// A directory without a repository.
    pub(crate) fn plain() -> Self {
        Self::plain_at(tempfile::tempdir().unwrap())
    }

    fn plain_at(root: tempfile::TempDir) -> Self {
        let place = Self { root };
        for name in ["owner", "home", "sandbox/layer/upper", "sandbox/layer/work", "sandbox/review"] {
            fs::create_dir_all(place.root.path().join(name)).unwrap();
        }
        place
    }

    /// One with a repository and a commit of these files.
    pub(crate) fn repository(files: &[(&str, &str)]) -> Self {
        Self::plain().with_repository(files)
    }

    /// The same for very many files: in memory where there is a place for that.
    pub(crate) fn large_repository(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self::plain_at(root).with_repository(files)
    }

    fn with_repository(self, files: &[(&str, &str)]) -> Self {
        let place = self;
        place.git(&["init", "-q", "-b", "main"]);
        place.git(&["config", "user.name", "The Owner"]);
        place.git(&["config", "user.email", "owner@example.com"]);
        for (name, text) in files {
            place.own(name, text);
        }
        place.commit("first");
        place
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn owner(&self) -> PathBuf {
        self.at("owner")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.files().upper()
    }

    pub(crate) fn files(&self) -> Files {
        Files::of(&self.at("sandbox"))
    }

    /// git as the owner would run it, in their tree.
    pub(crate) fn git_command(&self, directory: &Path, words: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.args(words).current_dir(directory).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.at("home")).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.owner(), words)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, directory: &Path, words: &[&str]) -> String {
        let output = self.git_command(directory, words);
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Writes a file of the owner's.
    pub(crate) fn own(&self, name: impl AsRef<[u8]>, text: impl AsRef<[u8]>) {
        let file = self.owner().join(path(name));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Puts on file what the start would.
    pub(crate) fn start(&self) {
        let git_dir = self.owner().join(".git");
        let repository = git_dir.exists().then(|| {
            let line = |words: &[&str]| {
                let output = self.git_command(&self.owner(), words);
                let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                Some(text).filter(|_| output.status.success())
            };
            let absolute = |text: String| self.owner().join(text);
            let common = absolute(line(&["rev-parse", "--git-common-dir"]).unwrap());
            Repository {
                git_dir: absolute(line(&["rev-parse", "--absolute-git-dir"]).unwrap()),
                objects: vec![common.join("objects")],
                common_dir: common,
                object_format: line(&["rev-parse", "--show-object-format"]).unwrap(),
                head: Head {
                    branch: line(&["symbolic-ref", "-q", "HEAD"]),
                    commit: line(&["rev-parse", "-q", "--verify", "HEAD"]),
                },
            }
        });
        let recorded =
            Recorded { version: 1, mode: workspace::Mode::Review, owner: self.owner(), repository };
        fs::write(self.files().recorded(), serde_json::to_vec(&recorded).unwrap()).unwrap();
    }

    /// The same, with the base recorded.
    pub(crate) fn begin(&self) {
        self.start();
        workspace::record_base(&self.files()).unwrap();
    }

    pub(crate) fn hide(&self, names: &[&str]) {
        let text: String = names.iter().map(|name| format!("{name}\0")).collect();
        fs::write(self.files().hidden(), text).unwrap();
    }

    fn way(&self, name: &Path) -> PathBuf {
        let mut at = PathBuf::new();
        for part in name.parent().unwrap().components() {
            at.push(part);
            self.make_directory(&at);
        }
        self.upper().join(name)
    }

    /// Writes a file inside.
    pub(crate) fn write(&self, name: impl AsRef<[u8]>, text: impl AsRef<[u8]>) {
        let file = self.way(&path(name));
        self.clear(&file);
        fs::write(file, text).unwrap();
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.upper().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        let file = self.way(&path(name));
        self.clear(&file);
        symlink(target, file).unwrap();
    }

    /// Makes a directory inside.
    pub(crate) fn make_directory(&self, name: &Path) {
        let directory = self.upper().join(name);
        let was = directory.symlink_metadata();
        if was.as_ref().is_ok_and(fs::Metadata::is_dir) {
            return;
        }
        self.clear(&directory);
        fs::create_dir(&directory).unwrap();
        // One that takes the place of something hides what the base has there.
        if was.is_ok() {
            setxattr(&directory, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
        }
    }

    /// Removes something inside.
    pub(crate) fn remove(&self, name: impl AsRef<[u8]>) {
        let name = path(name);
        let file = self.way(&name);
        self.clear(&file);
        if self.owner().join(&name).symlink_metadata().is_ok() {
            mknodat(CWD, &file, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        }
    }

    fn clear(&self, file: &Path) {
        match file.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(file).unwrap(),
            Ok(_) => fs::remove_file(file).unwrap(),
            Err(_) => {}
        }
    }

    pub(crate) fn order(&self) -> Order {
        Order { id: "0123456789ab".to_owned(), ..Order::default() }
    }

    /// What git would make of a directory: its tree.
    pub(crate) fn tree_of(&self, directory: &Path) -> String {
        self.git_in(directory, &["add", "-A"]);
        self.git_in(directory, &["write-tree"])
    }
}
