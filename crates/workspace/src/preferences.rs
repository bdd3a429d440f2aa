//! What a repository of ours takes over from the owner's settings: how files are compared, what is ignored, and a name. Nothing
//! of it names a program.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::git::GitError;
use crate::person::Person;
use crate::record::Recorded;
use crate::settings::{Scope, Settings};

/// Settings of `core` that decide what a file is as a blob, and start nothing. Not `safecrlf`: by that git takes nothing at
/// all where one file has mixed line ends.
const TAKEN: [&str; 5] = ["autocrlf", "eol", "filemode", "symlinks", "ignorecase"];

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
    /// Those of whose tree it is, for one repository or for none.
    pub(crate) fn read(recorded: &Recorded) -> Result<Self, GitError> {
        let repository = recorded.repository.as_ref();
        let person = Person::of_directory(&recorded.owner);
        let settings =
            Settings::of(repository.map_or(Path::new("/dev/null"), |found| &found.git_dir), person)?;
        let scopes = [Scope::Owner, Scope::Repository];
        let own = |file: &str| {
            let path = repository.map(|repository| repository.common_dir.join("info").join(file));
            path.map_or_else(Vec::new, |path| read(&path))
        };
        let both = |which: &str, file: &str| {
            [settings.patterns(which, &scopes, person), b"\n".to_vec(), own(file)].concat()
        };
        let is_plain = |value: &&str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let taken = |name: &&str| {
            let value = settings.value(&format!("core.{name}")).filter(is_plain)?;
            Some(((*name).to_owned(), value.to_owned()))
        };
        Ok(Self {
            core: TAKEN.iter().filter_map(taken).collect(),
            excludes: both("excludesfile", "exclude"),
            attributes: both("attributesfile", "attributes"),
            name: settings.value("user.name").map(str::to_owned),
            mail: settings.value("user.email").map(str::to_owned),
        })
    }
}

/// A small file; nothing where there is none.
fn read(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let file = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok());
    if let Some(file) = file {
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    text
}
