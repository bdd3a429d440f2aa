//! The part of the owner's git configuration that is safe inside: who commits, how files are compared, where branches
//! come from. What runs a program, names a secret or includes a file is left out: only what is listed here goes on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::beneath;
use crate::git::{Git, GitError};
use crate::layout::Layout;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// Taken over as they are.
const KEPT: [&str; 15] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "extensions.objectformat",
    "extensions.partialclone",
];
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
const LARGEST_EXCLUDES: u64 = 1 << 20;

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
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
    /// Asks git, which reads and starts nothing.
    pub(crate) fn read(layout: &Layout, owner: &Owner) -> Result<Self, Refusal> {
        let home = owner.home();
        let git = Git::new(layout.git_dir.path())?.with_settings_of(home.as_deref(), owner.other_user());
        let list = git.run(["config", "--null", "--list", "--show-scope", "--includes"])?;
        let mut settings = Self::parse(&list);
        if !settings.values.iter().any(|(scope, ..)| *scope == Scope::Repository) {
            return Err(not_taken(layout, owner)?);
        }
        settings.check_form(layout)?;
        settings.excludes = settings.read_excludes(owner, home);
        Ok(settings)
    }

    fn parse(list: &[u8]) -> Self {
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

    fn value(&self, name: &str) -> Option<&str> {
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

    /// The owner's patterns for all repositories. A repository does not say which file that is, and what only root may
    /// read is not the owner's.
    fn read_excludes(&self, owner: &Owner, home: Option<PathBuf>) -> Vec<u8> {
        let named = self
            .values
            .iter()
            .rev()
            .find(|(scope, name, _)| *scope == Scope::Owner && name == "core.excludesfile");
        let path = match (named.map(|(_, _, value)| value.as_str()), home) {
            (Some(path), home) => match (path.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                _ => PathBuf::from(path),
            },
            (None, Some(home)) => {
                let configured = std::env::var_os("XDG_CONFIG_HOME").filter(|_| owner.other_user().is_none());
                configured.map_or_else(|| home.join(".config"), PathBuf::from).join("git/ignore")
            }
            (None, None) => return Vec::new(),
        };
        let Ok(file) = beneath::open_anywhere(&path) else { return Vec::new() };
        let is_theirs = file.metadata().is_ok_and(|metadata| {
            use std::os::unix::fs::MetadataExt as _;
            metadata.is_file() && (metadata.uid() == owner.uid || metadata.mode() & 0o004 != 0)
        });
        if is_theirs { beneath::read_all(file, LARGEST_EXCLUDES).unwrap_or_default() } else { Vec::new() }
    }

    /// The configuration of the repository inside. `checkStat` and `trustctime`: files have other inode numbers and times
    /// of change there.
    pub(crate) fn inside(&self) -> String {
        let version = if self.object_format() == "sha1" && self.value("extensions.partialclone").is_none() {
            0
        } else {
            1
        };
        let mut text = String::new();
        for (name, value) in [
            ("core.repositoryformatversion", version.to_string().as_str()),
            ("core.bare", "false"),
            ("core.logallrefupdates", "true"),
            ("core.checkstat", "minimal"),
            ("core.trustctime", "false"),
        ] {
            put(&mut text, name, value);
        }
        for name in KEPT {
            if let Some(value) = self.value(name) {
                put(&mut text, name, value);
            }
        }
        for (_, name, value) in &self.values {
            let Some((section, rest)) = name.split_once('.') else { continue };
            let Some((_, variable)) = rest.rsplit_once('.') else { continue };
            match (section, variable) {
                ("remote", "url") | ("submodule", "url") => {
                    if let Some(url) = without_secrets(value) {
                        put(&mut text, name, &url);
                    }
                }
                ("remote", "fetch" | "promisor" | "partialclonefilter")
                | ("branch", "remote" | "merge")
                | ("submodule", "active") => put(&mut text, name, value),
                _ => {}
            }
        }
        text
    }
}

/// Why git itself does not take a repository, of which it then says nothing.
fn not_taken(layout: &Layout, owner: &Owner) -> Result<Refusal, Refusal> {
    let git = Git::new(layout.git_dir.path())?.with_settings_of(None, owner.other_user());
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

/// An URL without what lets one in: a name and a password before the host, and what follows a question mark. One that
/// starts a helper of git's is none.
fn without_secrets(url: &str) -> Option<String> {
    if url.contains("::") {
        return None;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        // user@host:path; the user of a code host's is everybody's.
        let rest = url.split_once('@').filter(|(user, _)| !user.contains('/') && *user != "git");
        return Some(rest.map_or(url, |(_, rest)| rest).to_owned());
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest[..end].split_at(rest[..end].find('/').unwrap_or(end));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let user = if scheme == "ssh" && authority.starts_with("git@") { "git@" } else { "" };
    Some(format!("{scheme}://{user}{host}{path}"))
}

/// Adds one value, as git reads it back.
fn put(text: &mut String, name: &str, value: &str) {
    let Some((section, rest)) = name.split_once('.') else { return };
    let (subsection, variable) =
        rest.rsplit_once('.').map_or((None, rest), |(sub, variable)| (Some(sub), variable));
    // Neither can hold these, whatever the file says.
    if value.contains('\0') || subsection.is_some_and(|sub| sub.contains(['\n', '\0'])) {
        return;
    }
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    match subsection {
        Some(sub) => text.push_str(&format!("[{section} \"{}\"]\n", quoted(sub))),
        None => text.push_str(&format!("[{section}]\n")),
    }
    text.push_str(&format!("\t{variable} = \"{}\"\n", quoted(value)));
}

/// The configuration of a repository that was found in a tree: its own file only, without anything that it includes.
pub(crate) fn of_found(layout: &Layout, owner: &Owner) -> Result<Settings, Refusal> {
    let asked = || -> Result<Vec<u8>, GitError> {
        let git = Git::new(layout.git_dir.path())?.with_settings_of(None, owner.other_user());
        git.run(["config", "--null", "--list", "--show-scope", "--local", "--no-includes"])
    };
    let settings = Settings::parse(&asked()?);
    settings.check_form(layout)?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_lets_one_in_stays_in_an_url() {
        for (url, plain) in [
            ("https://me:secret@example.com/a.git", Some("https://example.com/a.git")),
            ("https://token@example.com/a.git?key=secret#x", Some("https://example.com/a.git")),
            ("https://example.com?key=secret", Some("https://example.com")),
            ("https://a@b@example.com/x@y", Some("https://example.com/x@y")),
            ("ssh://git@example.com:22/a", Some("ssh://git@example.com:22/a")),
            ("ssh://me:secret@example.com/a", Some("ssh://example.com/a")),
            ("git@example.com:a/b.git", Some("git@example.com:a/b.git")),
            ("me@example.com:a", Some("example.com:a")),
            ("/srv/git/a.git", Some("/srv/git/a.git")),
            ("../a@b", Some("../a@b")),
            ("ext::sh -c 'evil'", None),
        ] {
            assert_eq!(without_secrets(url).as_deref(), plain, "{url}");
        }
    }

    #[test]
    fn only_what_is_listed_goes_on() {
        let list = b"global\0user.name\nAnn \"A\" Other\0global\0alias.x\n!evil\0local\0core.fsmonitor\nevil\0\
            local\0core.sshcommand\nevil\0local\0remote.origin.url\nhttps://t:secret@h/x\0local\0\
            http.https://h/.extraheader\nsecret\0local\0remote.origin.uploadpack\nevil\0local\0include.path\nevil\0\
            local\0branch.main.merge\nrefs/heads/main\0command\0core.pager\ncat\0local\0filter.x.smudge\nevil\0";
        let text = Settings::parse(list).inside();
        assert!(text.contains("[user]\n\tname = \"Ann \\\"A\\\" Other\"\n"), "{text}");
        assert!(text.contains("[remote \"origin\"]\n\turl = \"https://h/x\"\n"), "{text}");
        assert!(text.contains("merge = \"refs/heads/main\""), "{text}");
        for word in ["evil", "secret", "pager", "alias", "include"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
