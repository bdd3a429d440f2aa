//! What the owner has told git about files: read from their configuration as data, by a command that starts nothing. Of
//! all that stands there only what is listed here is ever used: how files are compared, what is ignored, and a name.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::git::{Git, GitError};
use crate::record::Recorded;

/// Settings of `core` that decide what a file is as a blob, and start nothing.
const TAKEN: [&str; 6] = ["autocrlf", "eol", "filemode", "symlinks", "ignorecase", "safecrlf"];

/// No list of patterns is longer.
const LONGEST: u64 = 1 << 20;

/// What the owner wants of git.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preferences {
    /// Names and values for a `[core]` of ours.
    pub(crate) core: Vec<(String, String)>,
    /// Patterns of what is ignored, the strongest last.
    pub(crate) excludes: Vec<u8>,
    /// Attributes, the strongest last.
    pub(crate) attributes: Vec<u8>,
    /// Who commits.
    pub(crate) name: Option<String>,
    /// Their address.
    pub(crate) mail: Option<String>,
}

impl Preferences {
    /// Those of whoever calls, for one repository or for none.
    pub(crate) fn read(recorded: &Recorded) -> Result<Self, GitError> {
        let repository = recorded.repository.as_ref();
        let directory = repository.map_or_else(|| PathBuf::from("/dev/null"), |found| found.git_dir.clone());
        let mut command = Git::new(Path::new("/"))?.variable("GIT_DIR", directory).command([
            "config",
            "-z",
            "--get-regexp",
            r"^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|safecrlf|excludesfile|attributesfile)|user\.(name|email))$",
        ]);
        command.env_remove("GIT_CONFIG_NOSYSTEM").env_remove("GIT_CONFIG_SYSTEM");
        command.env_remove("GIT_CONFIG_GLOBAL").env_remove("HOME");
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let configured = std::env::var_os("XDG_CONFIG_HOME").filter(|home| !home.is_empty());
        command.envs(home.iter().map(|home| ("HOME", home)));
        command.envs(configured.iter().map(|home| ("XDG_CONFIG_HOME", home)));
        command.stdout(Stdio::piped());
        let printed = command.output().map_err(GitError::Run)?.stdout;
        let mut found = Self::default();
        let mut files = Files::of(home.as_ref(), configured.as_ref());
        for setting in printed.split(|byte| *byte == 0) {
            let text = String::from_utf8_lossy(setting);
            // A name without a value is a yes.
            let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
            found.take(name, value, &mut files);
        }
        found.excludes = read(files.excludes.as_deref());
        found.attributes = read(files.attributes.as_deref());
        if let Some(repository) = repository {
            for (text, file) in [(&mut found.excludes, "exclude"), (&mut found.attributes, "attributes")] {
                text.push(b'\n');
                text.extend_from_slice(&read(Some(&repository.common_dir.join("info").join(file))));
            }
        }
        Ok(found)
    }

    fn take(&mut self, name: &str, value: &str, files: &mut Files) {
        match name {
            "user.name" => self.name = Some(value.to_owned()),
            "user.email" => self.mail = Some(value.to_owned()),
            // The command line of ours comes last, and says that there is no such file.
            "core.excludesfile" if value != "/dev/null" => files.excludes = files.expand(value),
            "core.attributesfile" if value != "/dev/null" => files.attributes = files.expand(value),
            _ => {
                let key = name.strip_prefix("core.").filter(|key| TAKEN.contains(key));
                let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if let Some(key) = key.filter(|_| is_plain) {
                    self.core.retain(|(other, _)| other != key);
                    self.core.push((key.to_owned(), value.to_owned()));
                }
            }
        }
    }
}

/// Where lists of patterns are.
struct Files {
    home: Option<PathBuf>,
    excludes: Option<PathBuf>,
    attributes: Option<PathBuf>,
}

impl Files {
    fn of(home: Option<&OsString>, configured: Option<&OsString>) -> Self {
        let home = home.map(PathBuf::from);
        let directory =
            configured.map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(".config")));
        let usual = |name: &str| directory.as_ref().map(|directory| directory.join("git").join(name));
        Self { excludes: usual("ignore"), attributes: usual("attributes"), home }
    }

    fn expand(&self, value: &str) -> Option<PathBuf> {
        match value.strip_prefix("~/") {
            Some(rest) => self.home.as_ref().map(|home| home.join(rest)),
            None => Some(PathBuf::from(value)).filter(|path| path.is_absolute()),
        }
    }
}

/// A small file; nothing where there is none.
fn read(path: Option<&Path>) -> Vec<u8> {
    let mut text = Vec::new();
    let file = path.filter(|path| path.is_file()).and_then(|path| File::open(path).ok());
    if let Some(file) = file {
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    text
}
