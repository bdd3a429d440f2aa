//! Which names usually hold secrets: a list that comes with the program, and what the owner adds to it or takes out.

use std::collections::{HashMap, HashSet};

/// The list that comes with the program, in the form that it is written in.
const DEFAULTS: &str = include_str!("secrets.txt");

/// Which files are hidden where git does not track them.
#[derive(Clone, Debug)]
pub struct SecretList {
    /// What the owner wants to see.
    shown: Patterns,
    /// What the owner wants hidden.
    hidden: Patterns,
    /// What is not meant by the defaults.
    excepted: Patterns,
    defaults: Patterns,
}

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Other,
}

impl Default for SecretList {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

impl SecretList {
    /// The defaults, with what the owner hides and shows besides.
    #[must_use]
    pub fn new(hide: &[String], show: &[String]) -> Self {
        let lines = DEFAULTS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (excepted, defaults): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with('!'));
        Self {
            shown: Patterns::new(show.iter().map(String::as_str)),
            hidden: Patterns::new(hide.iter().map(String::as_str)),
            excepted: Patterns::new(excepted.iter().map(|line| &line[1..])),
            defaults: Patterns::new(defaults.into_iter()),
        }
    }

    /// Whether something in the directory `parent`, relative to the tree, is meant.
    pub(crate) fn means(&self, parent: &[u8], name: &[u8], kind: Kind) -> bool {
        let matches = |patterns: &Patterns| patterns.mean(parent, name, kind);
        let is_meant = matches(&self.hidden) || (matches(&self.defaults) && !matches(&self.excepted));
        is_meant && !matches(&self.shown)
    }
}

/// Patterns, sorted by how they are looked up: every name of a tree is held against all of them.
#[derive(Clone, Debug, Default)]
struct Patterns {
    /// Whole names.
    names: HashSet<Vec<u8>>,
    /// What follows the last dot, of `*.x`.
    endings: HashSet<Vec<u8>>,
    /// Those with a `*` elsewhere.
    beginnings: Vec<Vec<u8>>,
    /// Those that begin with a `*`.
    others: Vec<Vec<u8>>,
    /// The first bytes of names and beginnings, and of endings: most names of a tree have neither.
    first: FirstBytes,
    first_of_ending: FirstBytes,
    /// Whole names of directories.
    directories: HashSet<Vec<u8>>,
    /// Ends of paths, by their last part: the parts before it, and what it has to be.
    paths: HashMap<Vec<u8>, Vec<(Vec<u8>, Kind)>>,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct FirstBytes([u64; 4]);

impl FirstBytes {
    fn insert(&mut self, text: &[u8]) {
        if let Some(byte) = text.first() {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }

    fn contains(&self, text: &[u8]) -> bool {
        text.first().is_some_and(|byte| self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0)
    }
}

impl Patterns {
    fn new<'text>(texts: impl Iterator<Item = &'text str>) -> Self {
        let mut patterns = Self::default();
        for text in texts {
            let (text, kind) = match text.strip_suffix('/') {
                Some(directory) => (directory, Kind::Directory),
                None => (text, Kind::Other),
            };
            let bytes = text.as_bytes().to_vec();
            if let Some((parent, last)) = text.rsplit_once('/') {
                patterns.first.insert(last.as_bytes());
                let ends = patterns.paths.entry(last.as_bytes().to_vec()).or_default();
                ends.push((parent.as_bytes().to_vec(), kind));
            } else if kind == Kind::Directory {
                patterns.first.insert(&bytes);
                patterns.directories.insert(bytes);
            } else if !text.contains('*') {
                patterns.first.insert(&bytes);
                patterns.names.insert(bytes);
            } else if let Some(ending) = text.strip_prefix("*.").filter(|rest| !rest.contains(['*', '.'])) {
                patterns.first_of_ending.insert(ending.as_bytes());
                patterns.endings.insert(ending.as_bytes().to_vec());
            } else if text.starts_with('*') {
                patterns.others.push(bytes);
            } else {
                patterns.first.insert(&bytes);
                patterns.beginnings.push(bytes);
            }
        }
        patterns
    }

    fn mean(&self, parent: &[u8], name: &[u8], kind: Kind) -> bool {
        let by_path = || {
            let ends = self.paths.get(name);
            ends.is_some_and(|ends| {
                ends.iter().any(|(above, of)| *of == kind && ends_with_path(parent, above))
            })
        };
        let is_likely = self.first.contains(name);
        if kind == Kind::Directory {
            return is_likely && (self.directories.contains(name) || by_path());
        }
        let ending = name.iter().rposition(|byte| *byte == b'.').map(|at| &name[at + 1..]);
        let ends = |ending: &[u8]| self.first_of_ending.contains(ending) && self.endings.contains(ending);
        ending.is_some_and(ends)
            || (is_likely && (self.names.contains(name) || by_path() || any(&self.beginnings, name)))
            || any(&self.others, name)
    }
}

fn any(patterns: &[Vec<u8>], name: &[u8]) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

fn ends_with_path(path: &[u8], end: &[u8]) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&[u8]> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let found = (0..=rest.len().saturating_sub(part.len())).find(|at| rest[*at..].starts_with(part));
        match found {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(list: &SecretList, path: &str) -> bool {
        let (path, kind) = match path.strip_suffix('/') {
            Some(directory) => (directory, Kind::Directory),
            None => (path, Kind::Other),
        };
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        list.means(parent.as_bytes(), name.as_bytes(), kind)
    }

    #[test]
    fn what_usually_holds_secrets_is_meant() {
        let list = SecretList::default();
        for path in [
            ".env",
            "a/.env.local",
            "server.pem",
            "x/y/tls.key",
            "id_rsa",
            "id_work",
            ".npmrc",
            ".netrc",
            "_netrc",
            ".aws/",
            "deep/.ssh/",
            ".kube/config",
            "a/.docker/config.json",
            "prod.tfvars",
            "terraform.tfstate.backup",
            "service-account-prod.json",
            "secrets.yml",
            "credentials.json",
        ] {
            assert!(means(&list, path), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            ".env.template",
            ".env.dist",
            "id_rsa.pub",
            "id_work.pub",
            "id_map.rs",
            "config",
            "x.kube/config",
            "config.json",
            "environment",
            "key",
            "monkey",
            "pem",
            ".aws",
            "main.rs",
            "terraform.tf",
        ] {
            assert!(!means(&list, path), "{path}");
        }
    }

    #[test]
    fn the_owner_can_read_the_list() {
        let page = include_str!("../../../docs/review.md");
        let lines = DEFAULTS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for name in lines.map(|line| line.trim_start_matches('!')) {
            assert!(page.contains(&format!("`{name}`")), "docs/review.md lacks {name}");
        }
    }

    #[test]
    fn the_owner_has_the_last_word() {
        let own = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let list =
            SecretList::new(&own(&["*.sqlite", "private/", ".env.example"]), &own(&["*.pem", "test.sqlite"]));
        for (path, is_meant) in [
            ("a.sqlite", true),
            ("test.sqlite", false),
            ("a.pem", false),
            ("x/private/", true),
            (".env.example", true),
            (".env", true),
        ] {
            assert_eq!(means(&list, path), is_meant, "{path}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, does) in [
            ("a*", "a", true),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            ("*a*", "xay", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("id_*.*", "id_rsa", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), does, "{pattern} {name}");
        }
    }
}
