//! What the owner has told git: read from their configuration as data, by a command that starts nothing, as the owner. Of
//! all that stands there only what is listed is ever used, here, inside and for repositories of ours.

mod inside;

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::beneath;
use crate::git::{Git, GitError};
use crate::layout::Layout;
use crate::owner::Owner;
use crate::person::Person;
use crate::refusal::Refusal;

/// What a repository may say of its own form. One that says more is not understood.
const EXTENSIONS: [&str; 7] = [
    "noop",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];
/// The largest file of patterns for all repositories.
const LARGEST_PATTERNS: u64 = 1 << 20;

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Set for everything that the owner does.
    Owner,
    /// Set in the repository, which may be anybody's work.
    Repository,
}

/// The values of one repository, in git's order: a later one counts.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: Vec<(Scope, String, String)>,
    /// What is ignored in every repository of the owner's.
    pub(crate) excludes: Vec<u8>,
}

impl Settings {
    /// Those of a repository that is understood.
    pub(crate) fn read(layout: &Layout, owner: &Owner) -> Result<Self, Refusal> {
        let mut settings = Self::of(layout.git_dir.path(), owner.person)?;
        if !settings.values.iter().any(|(scope, ..)| *scope == Scope::Repository) {
            return Err(not_taken(layout, owner)?);
        }
        settings.check_form(layout)?;
        settings.excludes = settings.patterns("excludesfile", &[Scope::Owner], owner.person);
        Ok(settings)
    }

    /// Those of a repository, or of none, as somebody has them.
    pub(crate) fn of(git_dir: &Path, person: Person) -> Result<Self, GitError> {
        let git = Git::new(Path::new("/"))?.variable("GIT_DIR", git_dir);
        let git = git.with_settings_of(person.home().as_deref(), person.other_user());
        Ok(Self::parse(&git.run(["config", "--null", "--list", "--show-scope", "--includes"])?))
    }

    pub(crate) fn parse(list: &[u8]) -> Self {
        let mut values = Vec::new();
        let mut parts = list.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            let scope = match scope {
                b"system" | b"global" => Scope::Owner,
                b"local" | b"worktree" => Scope::Repository,
                // What we said ourselves.
                _ => continue,
            };
            let entry = String::from_utf8_lossy(entry);
            let (name, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            values.push((scope, name.to_owned(), value.to_owned()));
        }
        Self { values, excludes: Vec::new() }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(_, key, _)| key == name).map(|(_, _, value)| value.as_str())
    }

    /// `sha1` or `sha256`.
    pub(crate) fn object_format(&self) -> String {
        self.value("extensions.objectformat").unwrap_or("sha1").to_ascii_lowercase()
    }

    fn check_form(&self, layout: &Layout) -> Result<(), Refusal> {
        let format = |what: String| Refusal::Format { path: layout.top.clone(), what };
        let version = self.value("core.repositoryformatversion").unwrap_or("0");
        if !["0", "1"].contains(&version) {
            return Err(format(format!("version {version}")));
        }
        if self.value("core.bare").is_some_and(is_true) {
            return Err(Refusal::Bare(layout.top.clone()));
        }
        let own = self.values.iter().filter(|(scope, ..)| *scope == Scope::Repository);
        for (_, name, value) in own {
            let Some(extension) = name.strip_prefix("extensions.") else { continue };
            let is_known = EXTENSIONS.contains(&extension) && (extension != "refstorage" || value == "files");
            if !is_known {
                return Err(format(format!("extensions.{extension} = {value}")));
            }
        }
        match self.object_format().as_str() {
            "sha1" | "sha256" => Ok(()),
            other => Err(format(format!("objects by {other}"))),
        }
    }

    /// Where the owner's git finds hooks and further settings, as far as they are outside of `.git`: whoever can write
    /// there runs programs by the owner's next git command.
    pub(crate) fn obeyed(&self, layout: &Layout, home: Option<&Path>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for (_, name, value) in &self.values {
            let value = match (value.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                _ => PathBuf::from(value),
            };
            if name == "core.hookspath" {
                found.push(layout.top.join(&value));
            }
            if name == "include.path" || (name.starts_with("includeif.") && name.ends_with(".path")) {
                found.extend([layout.common.path(), layout.git_dir.path()].map(|from| from.join(&value)));
            }
        }
        found
    }

    /// The patterns for all repositories, of what is ignored or of attributes, as far as those of these scopes name a file.
    /// What only root may read is not the owner's.
    pub(crate) fn patterns(&self, which: &str, scopes: &[Scope], person: Person) -> Vec<u8> {
        let name = format!("core.{which}");
        let is_named = |(scope, key, _): &&(Scope, String, String)| scopes.contains(scope) && *key == name;
        let named = self.values.iter().rev().find(is_named).map(|(_, _, value)| value.as_str());
        let usual = || {
            let name = if which == "excludesfile" { "git/ignore" } else { "git/attributes" };
            person.configuration().map(|configuration| configuration.join(name))
        };
        let path = match named {
            Some(path) => match (path.strip_prefix("~/"), person.home()) {
                (Some(below), Some(home)) => Some(home.join(below)),
                _ => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
            },
            None => usual(),
        };
        let Some(file) = path.and_then(|path| beneath::open_anywhere(&path).ok()) else { return Vec::new() };
        let is_theirs = file.metadata().is_ok_and(|metadata| {
            metadata.is_file() && (metadata.uid() == person.uid || metadata.mode() & 0o004 != 0)
        });
        if is_theirs { beneath::read_all(file, LARGEST_PATTERNS).unwrap_or_default() } else { Vec::new() }
    }
}

/// Why git itself does not take a repository, of which it then says nothing.
fn not_taken(layout: &Layout, owner: &Owner) -> Result<Refusal, Refusal> {
    let git = Git::new(layout.git_dir.path())?.with_settings_of(None, owner.person.other_user());
    let words = ["config", "--null", "--list", "--no-includes", "--file"].map(OsStr::new);
    let file = layout.common.path().join("config");
    let list = git.run(words.into_iter().chain([file.as_os_str()]))?;
    let scoped = list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let scoped: Vec<u8> = scoped.flat_map(|entry| [b"local\0", entry, b"\0"].concat()).collect();
    Settings::parse(&scoped).check_form(layout)?;
    Ok(Refusal::Format { path: layout.top.clone(), what: "git does not take it for one".to_owned() })
}

fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

/// The configuration of a repository that was found in a tree: its own file only, without anything that it includes.
pub(crate) fn of_found(layout: &Layout, owner: &Owner) -> Result<Settings, Refusal> {
    let asked = || -> Result<Vec<u8>, GitError> {
        let git = Git::new(layout.git_dir.path())?.with_settings_of(None, owner.person.other_user());
        git.run(["config", "--null", "--list", "--show-scope", "--local", "--no-includes"])
    };
    let settings = Settings::parse(&asked()?);
    settings.check_form(layout)?;
    Ok(settings)
}
