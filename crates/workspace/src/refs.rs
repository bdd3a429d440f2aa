//! A repository's refs and where it stands, read from its files: loose ones go before packed ones, as in git.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::beneath::Directory;
use crate::layout::Layout;
use crate::record::Head;
use crate::refusal::Refusal;

/// The largest list of packed refs.
const LARGEST: u64 = 256 << 20;
/// No ref, nor HEAD, is longer.
const LONGEST: u64 = 4096;
/// More than anybody has that are not packed.
const MOST_LOOSE: usize = 200_000;
/// Refs of our own, which are nobody's business inside.
const OURS: &[u8] = b"refs/agentbox/";

/// What a ref says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An object.
    Object(Vec<u8>),
    /// Another ref.
    Ref(Vec<u8>),
}

/// All refs of a repository but ours, and HEAD.
#[derive(Debug)]
pub(crate) struct Refs {
    pub(crate) head: Target,
    pub(crate) all: BTreeMap<Vec<u8>, Target>,
}

impl Refs {
    pub(crate) fn read(layout: &Layout) -> Result<Self, Refusal> {
        let common = &layout.common;
        let failed = |name: &str| {
            let path = common.path().join(name);
            move |source| Refusal::Repository { path, source }
        };
        let list = common.read(Path::new("packed-refs"), LARGEST).map_err(failed("packed-refs"))?;
        let mut all = packed(&list.unwrap_or_default());
        let mut waiting = vec![PathBuf::from("refs")];
        let mut seen = 0;
        while let Some(path) = waiting.pop() {
            let shown = path.display().to_string();
            let directory = common.below(&path).map_err(failed(&shown))?;
            for entry in directory.entries().map_err(failed(&shown))? {
                seen += 1;
                if seen > MOST_LOOSE {
                    return Err(Refusal::TooLarge { path: common.path().join("refs"), most: MOST_LOOSE });
                }
                let path = path.join(OsStr::from_bytes(&entry.name));
                match entry.kind {
                    FileType::Directory => waiting.push(path),
                    _ => all.extend(loose(common, &path)),
                }
            }
        }
        let head = layout.git_dir.read(Path::new("HEAD"), LONGEST).map_err(failed("HEAD"))?;
        let head = head.as_deref().and_then(target).ok_or_else(|| Refusal::Format {
            path: layout.top.clone(),
            what: "its HEAD says nothing that is known".to_owned(),
        })?;
        Ok(Self { head, all })
    }

    /// Where it stands.
    pub(crate) fn stands_at(&self) -> Head {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match &self.head {
            Target::Object(object) => Head { branch: None, commit: Some(text(object)) },
            Target::Ref(name) => Head {
                branch: name.strip_prefix(b"refs/heads/").map(text),
                commit: self.resolve(name).map(|object| text(&object)),
            },
        }
    }

    fn resolve(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut name = name;
        for _ in 0..5 {
            match self.all.get(name)? {
                Target::Object(object) => return Some(object.clone()),
                Target::Ref(next) => name = next,
            }
        }
        None
    }
}

/// The refs of a list.
pub(crate) fn packed(list: &[u8]) -> BTreeMap<Vec<u8>, Target> {
    let mut all = BTreeMap::new();
    for line in list.split(|byte| *byte == b'\n') {
        // Lines that begin with `#` or `^` are about the list, or about the line before.
        let mut words = line.splitn(2, |byte| *byte == b' ');
        if let (Some(object), Some(name)) = (words.next(), words.next())
            && is_object(object)
            && is_name(name)
        {
            all.insert(name.to_vec(), Target::Object(object.to_vec()));
        }
    }
    all
}

/// What one file says, if it is a ref; locks and what is being written are none.
fn loose(common: &Directory, path: &Path) -> Option<(Vec<u8>, Target)> {
    let name = path.as_os_str().as_bytes();
    if !is_name(name) {
        return None;
    }
    let text = common.read(path, LONGEST).ok()??;
    Some((name.to_vec(), target(&text)?))
}

pub(crate) fn target(text: &[u8]) -> Option<Target> {
    let text = text.trim_ascii();
    match text.strip_prefix(b"ref:") {
        Some(name) => {
            Some(name.trim_ascii()).filter(|name| is_name(name)).map(|name| Target::Ref(name.to_vec()))
        }
        None => is_object(text).then(|| Target::Object(text.to_vec())),
    }
}

/// An object's id, of either length.
fn is_object(text: &[u8]) -> bool {
    matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

/// A name that git would take, and that leads nowhere as a path.
fn is_name(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| !byte.is_ascii_control() && !b" ~^:?*[\\".contains(byte);
    name.starts_with(b"refs/")
        && !name.starts_with(OURS)
        && name.len() < 1024
        && name.iter().all(is_plain)
        && !name.ends_with(b".lock")
        && !name.windows(2).any(|pair| pair == b".." || pair == b"//" || pair == b"/.")
        && !name.ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in ["refs/heads/main", "refs/tags/v1.0", "refs/remotes/origin/a-b/c", "refs/heads/ä"] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in [
            "HEAD",
            "refs/../config",
            "refs/heads/",
            "refs/heads/a\n",
            "refs/heads/x.lock",
            "refs/.a",
            "refs/agentbox/x",
        ] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_head_is_a_ref_or_an_object() {
        let object = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(target(b"ref: refs/heads/main\n"), Some(Target::Ref(b"refs/heads/main".to_vec())));
        assert_eq!(target(object.as_bytes()), Some(Target::Object(object.as_bytes().to_vec())));
        assert_eq!(target(b"nonsense"), None);
        assert_eq!(target(b"ref: /etc/passwd"), None);
    }
}
