//! The `.git` inside. It is ours, never the owner's: a copy of where the repository stands, a configuration of listed
//! values, and the owner's objects to borrow from, which are bound read-only beside it. Nothing in it runs a program.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::beneath::{Directory, is_absent};
use crate::layout::Layout;
use crate::refs::{Refs, Target};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::upper::{Upper, path_of};

/// Where object stores show inside, each by its number.
const OBJECTS: &str = "/.agentbox/objects";
/// No list of patterns is longer.
const LARGEST: u64 = 16 << 20;

/// The object stores that are bound, each once.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    pub(crate) paths: Vec<PathBuf>,
}

/// More binds than a start should take.
const MOST_STORES: usize = 96;

impl Stores {
    /// Whether so many more can be bound.
    pub(crate) fn have_room(&self, more: usize) -> bool {
        self.paths.len() + more <= MOST_STORES
    }

    fn number(&mut self, store: &Path) -> usize {
        self.paths.iter().position(|known| known == store).unwrap_or_else(|| {
            self.paths.push(store.to_owned());
            self.paths.len() - 1
        })
    }
}

/// A repository of the owner's, read.
pub(crate) struct Repository<'layout> {
    pub(crate) layout: &'layout Layout,
    pub(crate) refs: &'layout Refs,
    pub(crate) settings: &'layout Settings,
}

/// Makes the `.git` of a repository in the layer, at `below` relative to the tree.
pub(crate) fn make(
    upper: &mut Upper<'_>,
    below: &Path,
    repository: &Repository<'_>,
    stores: &mut Stores,
) -> Result<(), Refusal> {
    let Repository { layout, refs, settings } = repository;
    let git = below.join(".git");
    upper.replace(&git)?;
    for directory in ["info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"] {
        upper.directory(&git.join(directory))?;
    }
    upper.file(&git.join("HEAD"), &written(&refs.head))?;
    put_refs(upper, &git, refs)?;
    copy_index(upper, &git, &layout.git_dir)?;
    let mut alternates = String::new();
    for store in &layout.objects {
        alternates.push_str(&format!("{OBJECTS}/{}\n", stores.number(store)));
    }
    upper.file(&git.join("objects/info/alternates"), alternates.as_bytes())?;
    upper.file(&git.join("config"), settings.inside().as_bytes())?;
    // What is more particular comes later, and counts.
    let mut excludes = settings.excludes.clone();
    excludes.push(b'\n');
    excludes.extend(read(&layout.common, "info/exclude")?.unwrap_or_default());
    upper.file(&git.join("info/exclude"), &excludes)?;
    for (directory, name) in [
        (&layout.common, "info/attributes"),
        (&layout.git_dir, "info/sparse-checkout"),
        (&layout.common, "shallow"),
    ] {
        if let Some(contents) = read(directory, name)? {
            upper.file(&git.join(name), &contents)?;
        }
    }
    Ok(())
}

fn read(directory: &Directory, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    directory
        .read(Path::new(name), LARGEST)
        .map_err(|source| Refusal::Repository { path: directory.path().join(name), source })
}

fn written(target: &Target) -> Vec<u8> {
    let mut bytes = match target {
        Target::Object(object) => object.clone(),
        Target::Ref(name) => [b"ref: ", name.as_slice()].concat(),
    };
    bytes.push(b'\n');
    bytes
}

/// One file for all refs that name an object, which is one to write and one to read; the others cannot be in it.
fn put_refs(upper: &Upper<'_>, git: &Path, refs: &Refs) -> Result<(), Refusal> {
    let mut packed = b"# pack-refs with: sorted \n".to_vec();
    for (name, target) in &refs.all {
        match target {
            Target::Object(object) => {
                packed.extend_from_slice(object);
                packed.push(b' ');
                packed.extend_from_slice(name);
                packed.push(b'\n');
            }
            Target::Ref(_) => {
                let path = path_of(name);
                for parent in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                    if !parent.as_os_str().is_empty() {
                        upper.directory(&git.join(parent))?;
                    }
                }
                upper.file(&git.join(path), &written(target))?;
            }
        }
    }
    upper.file(&git.join("packed-refs"), &packed)
}

/// The index, and what it may be split off from.
fn copy_index(upper: &Upper<'_>, git: &Path, git_dir: &Directory) -> Result<(), Refusal> {
    let unreadable = |name: &Path| {
        let path = git_dir.path().join(name);
        move |source| Refusal::Repository { path, source }
    };
    let index = Path::new("index");
    match git_dir.file(index) {
        Err(error) if is_absent(&error) => return Ok(()),
        file => upper.copy(&git.join(index), &file.map_err(unreadable(index))?)?,
    }
    for entry in git_dir.entries().map_err(unreadable(Path::new("")))? {
        let name = path_of(&entry.name);
        if name.as_os_str().as_bytes().starts_with(b"sharedindex.") {
            upper.copy(&git.join(name), &git_dir.file(name).map_err(unreadable(name))?)?;
        }
    }
    Ok(())
}
