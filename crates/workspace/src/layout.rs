//! Where the parts of a repository are: what `.git` is or leads to, where refs and objects are, and whom objects are
//! borrowed from. Only what is plainly a repository of this very directory counts.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::beneath::Directory;
use crate::refusal::Refusal;

/// No small file of a repository's is larger.
const SMALL: u64 = 1 << 20;
/// How far git itself goes from one store to the next.
const FURTHEST: usize = 5;
/// More stores than anybody borrows from.
const MOST_STORES: usize = 32;

/// The parts of one repository.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Where its work tree is.
    pub(crate) top: PathBuf,
    /// HEAD, the index, and what a work tree has for itself.
    pub(crate) git_dir: Directory,
    /// Refs, objects and configuration; the same but in a linked work tree.
    pub(crate) common: Directory,
    /// Its own objects first, then those that it borrows.
    pub(crate) objects: Vec<PathBuf>,
}

/// Whose word is taken for where a repository is.
#[derive(Clone, Copy)]
pub(crate) enum Trust<'tree> {
    /// The owner's, who named its directory.
    Owner,
    /// Nobody's: it was found in a tree, and nothing outside of these directories is its own.
    Found(&'tree [&'tree Path]),
}

impl Layout {
    /// The repository whose work tree begins at `top`, if there is one.
    pub(crate) fn of(top: &Path, trust: Trust<'_>) -> Result<Option<Self>, Refusal> {
        let dot_git = top.join(".git");
        let metadata = match fs::symlink_metadata(&dot_git) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata.map_err(unreadable(&dot_git))?,
        };
        let git_dir = if metadata.is_file() {
            let led = follow(top)?;
            check_way_back(top, &led)?;
            led
        } else if metadata.is_dir() {
            dot_git
        } else {
            return Err(Refusal::Format { path: top.to_owned(), what: "its .git is a link".to_owned() });
        };
        let git_dir = Directory::open(&git_dir).map_err(unreadable(&git_dir))?;
        let common = common_dir(&git_dir)?;
        let format = |what: &str| Refusal::Format { path: top.to_owned(), what: what.to_owned() };
        for part in ["objects", "refs"] {
            common.below(Path::new(part)).map_err(|error| format(&format!("{part}: {error}")))?;
        }
        let layout =
            Self { top: top.to_owned(), objects: stores(&common.path().join("objects"))?, git_dir, common };
        if layout.common.path().join("reftable").exists() {
            return Err(format("its refs are in a reftable"));
        }
        match trust {
            Trust::Owner => Ok(Some(layout)),
            Trust::Found(within) => layout.confined_to(within).map(Some),
        }
    }

    /// The same, as far as it lies within directories that are shown anyway: a repository that somebody inside once made
    /// could name others'.
    fn confined_to(mut self, within: &[&Path]) -> Result<Self, Refusal> {
        let is_within = |path: &Path| within.iter().any(|directory| path.starts_with(directory));
        let own =
            [self.git_dir.path(), self.common.path(), self.objects.first().map_or(Path::new("/"), |p| p)];
        if !own.iter().all(|path| is_within(path)) {
            return Err(Refusal::Foreign { git_dir: self.git_dir.path().to_owned(), path: self.top });
        }
        self.objects.retain(|store| is_within(store));
        Ok(self)
    }
}

/// Where a `.git` that is a file leads.
fn follow(top: &Path) -> Result<PathBuf, Refusal> {
    let dot_git = top.join(".git");
    let directory = Directory::open(top).map_err(unreadable(top))?;
    let text = directory.read(Path::new(".git"), SMALL).map_err(unreadable(&dot_git))?.unwrap_or_default();
    let led = text.strip_prefix(b"gitdir: ").map(trimmed);
    let led = led.ok_or_else(|| Refusal::Format {
        path: top.to_owned(),
        what: "its .git says nothing that is known".to_owned(),
    })?;
    fs::canonicalize(top.join(led)).map_err(unreadable(&dot_git))
}

/// A linked work tree and a submodule are known by their repository; anybody can write a file that leads somewhere.
fn check_way_back(top: &Path, git_dir: &Path) -> Result<(), Refusal> {
    let foreign = || Refusal::Foreign { path: top.to_owned(), git_dir: git_dir.to_owned() };
    let directory = Directory::open(git_dir).map_err(unreadable(git_dir))?;
    let leads_back = |path: PathBuf| fs::canonicalize(path).is_ok_and(|path| path == top);
    if let Ok(Some(back)) = directory.read(Path::new("gitdir"), SMALL) {
        let back = git_dir.join(trimmed(&back));
        let is_back = back.file_name() == Some(OsStr::new(".git"))
            && back.parent().is_some_and(|path| leads_back(path.to_owned()));
        return if is_back { Ok(()) } else { Err(foreign()) };
    }
    // Written by git itself for a submodule, in one form only.
    let config = directory.read(Path::new("config"), SMALL).ok().flatten().unwrap_or_default();
    let work_tree = config.split(|byte| *byte == b'\n').find_map(|line| {
        line.trim_ascii().strip_prefix(b"worktree")?.trim_ascii_start().strip_prefix(b"=").map(trimmed)
    });
    match work_tree.map(|path| leads_back(git_dir.join(path))) {
        Some(true) => Ok(()),
        _ => Err(foreign()),
    }
}

fn common_dir(git_dir: &Directory) -> Result<Directory, Refusal> {
    let file = Path::new("commondir");
    let path = match git_dir.read(file, SMALL).map_err(unreadable(&git_dir.path().join(file)))? {
        Some(text) => git_dir.path().join(trimmed(&text)),
        None => git_dir.path().to_owned(),
    };
    let path = fs::canonicalize(&path).map_err(unreadable(&path))?;
    Directory::open(&path).map_err(unreadable(&path))
}

/// A store and all that it borrows from, as git would find them.
fn stores(first: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut found = vec![first.to_owned()];
    let mut next = vec![first.to_owned()];
    for _ in 0..FURTHEST {
        let mut further = Vec::new();
        for store in next {
            let directory = Directory::open(&store).map_err(unreadable(&store))?;
            let list = Path::new("info/alternates");
            let text =
                directory.read(list, SMALL).map_err(unreadable(&store.join(list)))?.unwrap_or_default();
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
            for line in lines {
                // One that is not there is passed over by git, too.
                let Ok(path) = fs::canonicalize(store.join(OsStr::from_bytes(line))) else { continue };
                if path.is_dir() && !found.contains(&path) && found.len() < MOST_STORES {
                    found.push(path.clone());
                    further.push(path);
                }
            }
        }
        next = further;
    }
    Ok(found)
}

/// Whether a directory is itself what a `.git` is.
pub(crate) fn is_bare(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Whether a work tree begins here.
pub(crate) fn begins_at(path: &Path) -> bool {
    let dot_git = path.join(".git");
    fs::symlink_metadata(&dot_git).is_ok_and(|metadata| metadata.is_file() || is_bare(&dot_git))
}

fn trimmed(text: &[u8]) -> &OsStr {
    let text = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    OsStr::from_bytes(text.trim_ascii())
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Refusal + use<> {
    let path = path.to_owned();
    move |source| Refusal::Repository { path, source }
}
