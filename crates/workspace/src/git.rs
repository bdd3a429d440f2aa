//! git as it runs on the host: in a repository of ours, with nobody's configuration but what is said here, so that no
//! hook, filter, pager or helper of the owner's or the agent's is ever started.

mod error;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub use error::{GitError, Said};

/// Where it is looked for; what the caller's PATH says does not matter.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/run/current-system/sw/bin/git"];

/// What is said on each command line: nothing of it can be overruled by a file.
const SETTINGS: [&str; 16] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "diff.ignoreSubmodules=dirty",
    "submodule.recurse=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

/// A way to run git: the repository, and where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
    directory: PathBuf,
    work_tree: Option<PathBuf>,
    index: Option<PathBuf>,
    /// Object stores beside the repository's own.
    alternates: Vec<PathBuf>,
    /// Where new objects go, if not into the repository.
    store: Option<PathBuf>,
    /// What is said beside `SETTINGS`; the last word counts.
    settings: Vec<String>,
    variables: Vec<(&'static str, OsString)>,
    /// Whose files it writes, where that is not whoever calls.
    writer: Option<(u32, u32)>,
    /// Whose own configuration is read, and who git is, where it is somebody's.
    owner: Option<OwnerOfSettings>,
}

#[derive(Clone, Debug)]
struct OwnerOfSettings {
    /// Whose settings for all repositories are read, besides the machine's; without one only the repository's own are.
    home: Option<PathBuf>,
    /// Whom git runs as, where it is not us.
    user: Option<(u32, u32)>,
}

impl Git {
    /// git in the repository at `directory`, which nobody but us writes to.
    pub(crate) fn new(directory: &Path) -> Result<Self, GitError> {
        let program = PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists());
        let program = program.ok_or(GitError::NotInstalled)?;
        let directory = directory.to_owned();
        Ok(Self {
            program,
            directory,
            work_tree: None,
            index: None,
            alternates: Vec::new(),
            store: None,
            settings: Vec::new(),
            variables: Vec::new(),
            writer: None,
            owner: None,
        })
    }

    /// The repository.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The same with new objects somewhere else.
    pub(crate) fn storing_in(mut self, store: &Path) -> Self {
        self.store = Some(store.to_owned());
        self
    }

    /// The same with a setting of the caller's.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// The same with a variable of the caller's.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The same where nobody waits for the disk: what is written can be made again from what it was made from.
    pub(crate) fn unsynced(self) -> Self {
        let all =
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.fsync"), ("GIT_CONFIG_VALUE_0", "none")];
        all.into_iter().fold(self, |git, (name, value)| git.variable(name, value))
    }

    /// The same with what it writes belonging to somebody: root writes as whoever owns a repository.
    pub(crate) fn writing_as(mut self, writer: Option<(u32, u32)>) -> Self {
        self.writer = writer;
        self
    }

    /// The same for a tree of files.
    pub(crate) fn on(mut self, work_tree: &Path) -> Self {
        self.work_tree = Some(work_tree.to_owned());
        self
    }

    /// The same with another index.
    pub(crate) fn with_index(mut self, index: &Path) -> Self {
        self.index = Some(index.to_owned());
        self
    }

    /// The same with objects of others, to read.
    pub(crate) fn with_objects(mut self, stores: &[PathBuf]) -> Self {
        self.alternates.extend_from_slice(stores);
        self
    }

    /// The same in a repository of the owner's, as its owner, with the settings in that home directory: only for what
    /// starts nothing, to read the configuration or to set a ref.
    pub(crate) fn with_settings_of(mut self, home: Option<&Path>, user: Option<(u32, u32)>) -> Self {
        self.owner = Some(OwnerOfSettings { home: home.map(Path::to_owned), user });
        self
    }

    /// A command that is not started yet; its streams are nobody's.
    pub(crate) fn command<Word: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = Word>) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
        ] {
            command.env(name, value);
        }
        command.env("GIT_DIR", &self.directory);
        if let Some(OwnerOfSettings { home, user }) = &self.owner {
            if let Some(home) = home {
                for name in ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
                    command.env_remove(name);
                }
                command.env("HOME", home);
                let configured = std::env::var_os("XDG_CONFIG_HOME").filter(|_| user.is_none());
                command.envs(configured.map(|directory| ("XDG_CONFIG_HOME", directory)));
            }
            if let Some((uid, gid)) = *user {
                command.uid(uid).gid(gid);
            }
        }
        if let Some(work_tree) = &self.work_tree {
            command.env("GIT_WORK_TREE", work_tree).current_dir(work_tree);
        } else {
            command.current_dir(&self.directory);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if !self.alternates.is_empty() {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&self.alternates));
        }
        if let Some(store) = &self.store {
            command.env("GIT_OBJECT_DIRECTORY", store);
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if let Some((user, group)) = self.writer {
            command.uid(user).gid(group);
        }
        for setting in SETTINGS.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.args(words);
        command
    }

    /// Runs a command to its end: what it printed.
    pub(crate) fn run<Word: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = Word>,
    ) -> Result<Vec<u8>, GitError> {
        self.run_with(words, Vec::new())
    }

    /// The same for a command that reads.
    pub(crate) fn run_with<Word: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = Word>,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, GitError> {
        let words: Vec<OsString> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let mut command = self.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Run)?;
        let writer = feed(&mut child, input);
        let output = child.wait_with_output().map_err(GitError::Run)?;
        // One that ends early does not read all of it, and says by its end whether that was right.
        drop(writer.map(std::thread::JoinHandle::join));
        if output.status.success() {
            return Ok(output.stdout);
        }
        let what = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        Err(GitError::Failed { what, source: Said::from_bytes(&output.stderr) })
    }

    /// Runs a command that prints one line.
    pub(crate) fn line<Word: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = Word>,
    ) -> Result<String, GitError> {
        let printed = self.run(words)?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }
}

/// Writes from a thread of its own, so that neither waits for the other.
pub(crate) fn feed(child: &mut Child, input: Vec<u8>) -> Option<std::thread::JoinHandle<io::Result<()>>> {
    let mut stdin = child.stdin.take()?;
    if input.is_empty() {
        return None;
    }
    Some(std::thread::spawn(move || stdin.write_all(&input)))
}

/// Directories as git reads a list of them: one with a colon or a quote in it is quoted.
fn listed(directories: &[PathBuf]) -> OsString {
    let mut list = Vec::new();
    for directory in directories {
        if !list.is_empty() {
            list.push(b':');
        }
        let bytes = directory.as_os_str().as_bytes();
        if !bytes.iter().any(|byte| matches!(byte, b':' | b'"' | b'\\' | b'\n')) {
            list.extend_from_slice(bytes);
            continue;
        }
        list.push(b'"');
        for &byte in bytes {
            match byte {
                b'"' | b'\\' => list.extend_from_slice(&[b'\\', byte]),
                b'\n' => list.extend_from_slice(b"\\n"),
                byte => list.push(byte),
            }
        }
        list.push(b'"');
    }
    OsString::from_vec(list)
}
