//! What the caller and whoever runs the machine have set once, in `config.toml` of their configuration directories. The
//! caller's own goes first, value by value. What stands in a workspace is never read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use policy::network::ProxyChoice;
use serde::Deserialize;

use crate::error::EngineError;

/// The longest file that is read.
const LONGEST: u64 = 1024 * 1024;

/// A value, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The file that sets it.
    pub from: PathBuf,
}

/// All that can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The owner's own proxy.
    pub upstream_proxy: Option<Setting<ProxyChoice>>,
    /// Names of files that are hidden in a workspace, besides those that usually hold secrets.
    pub workspace_hide: Option<Setting<Vec<String>>>,
    /// Names of files that are not.
    pub workspace_show: Option<Setting<Vec<String>>>,
}

/// As it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    network: Network,
    workspace: Workspace,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Workspace {
    hide: Option<Vec<String>>,
    show: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Network {
    upstream_proxy: Option<ProxyChoice>,
}

impl Configuration {
    /// Reads it: no file is needed, and one that cannot be understood is an error.
    pub fn read() -> Result<Self, EngineError> {
        let mut all = Self::default();
        for path in Self::files() {
            let Some(file) = read(&path)? else { continue };
            all.upstream_proxy = all.upstream_proxy.or(set(file.network.upstream_proxy, &path));
            all.workspace_hide = all.workspace_hide.or(set(file.workspace.hide, &path));
            all.workspace_show = all.workspace_show.or(set(file.workspace.show, &path));
        }
        Ok(all)
    }

    /// The files that are looked for, those that go first first.
    #[must_use]
    pub fn files() -> Vec<PathBuf> {
        directories().into_iter().map(|directory| directory.join("config.toml")).collect()
    }
}

fn set<T>(value: Option<T>, from: &Path) -> Option<Setting<T>> {
    value.map(|value| Setting { value, from: from.to_owned() })
}

/// Where the caller's configuration is, and where the machine's.
pub(crate) fn directories() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    own.into_iter().chain([PathBuf::from("/etc")]).map(|directory| directory.join("agentbox")).collect()
}

fn read(path: &Path) -> Result<Option<File>, EngineError> {
    let unusable = |source| EngineError::Configuration { path: path.to_owned(), source };
    let is_absent =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match fs::metadata(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unusable(error)),
        // What is no file may never end.
        Ok(metadata) if !metadata.is_file() => return Err(unusable(io::Error::other("it is not a file"))),
        Ok(metadata) if metadata.len() > LONGEST => return Err(unusable(io::ErrorKind::FileTooLarge.into())),
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(unusable)?;
    toml::from_str(&text).map(Some).map_err(|error| unusable(io::Error::other(describe(&text, &error))))
}

/// Where and what is wrong. The line itself is not shown, for it may hold a password.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', ": ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|error| describe(text, &error))
    }

    #[test]
    fn what_is_not_set_is_not_there() {
        for text in ["", "# nothing\n", "[network]\n"] {
            assert_eq!(parse(text).unwrap().network.upstream_proxy, None);
        }
    }

    #[test]
    fn a_mistake_is_named_by_its_line_and_no_password_is_shown() {
        let cases = [
            ("[network]\nupstream_proxy = 'none'\n", "line 2: unknown field"),
            ("[net]\n", "line 1: unknown field"),
            ("\n\n[network\n", "line 3: "),
            ("[network]\n\nupstream-proxy = 'ftp://me:secret@proxy'\n", "line 3: it is not of the form"),
            ("[network]\nupstream-proxy = 3128\n", "line 2: invalid type"),
        ];
        for (text, expected) in cases {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(expected) && !said.contains("secret"), "{said}");
        }
    }
}
