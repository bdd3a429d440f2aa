//! The directory that an owner gives for a workspace: which ones are taken, whose it is, and its repository.

use std::env;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::beneath::Directory;
use crate::layout::{Layout, Trust, begins_at, is_bare};
use crate::person::{Person, homes};
use crate::refusal::Refusal;

/// An owner's directory that may be a workspace.
#[derive(Debug)]
pub struct Owner {
    pub(crate) directory: Directory,
    pub(crate) person: Person,
    pub(crate) repository: Option<Layout>,
}

impl Owner {
    /// Looks at a directory. Neither the host itself nor a home directory is a project; `own` are our directories, which
    /// nobody inside may see.
    pub fn look_at(given: &Path, own: &[PathBuf]) -> Result<Self, Refusal> {
        let unusable = |source| Refusal::Unusable { path: given.to_owned(), source };
        let path = fs::canonicalize(given).map_err(unusable)?;
        if path.to_str().is_none() {
            let source = io::Error::other("its path is not valid UTF-8");
            return Err(Refusal::Unusable { path: given.to_owned(), source });
        }
        if let Some(what) = forbidden(&path, own) {
            return Err(Refusal::Forbidden { path, what });
        }
        let metadata = fs::metadata(&path).map_err(unusable)?;
        if !metadata.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        let directory = Directory::open(&path).map_err(unusable)?;
        if let Some(mount) = mounted_below(&path) {
            return Err(Refusal::Mounted { path, mount });
        }
        let repository = repository_of(&path, own)?;
        let owner = Self { directory, person: Person::of(&metadata), repository };
        owner.check_repository()?;
        Ok(owner)
    }

    /// Where it is, without a link on the way.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Root reads for somebody else here, who could name a repository that only root may read.
    fn check_repository(&self) -> Result<(), Refusal> {
        let (Some(layout), Some((uid, _))) = (&self.repository, self.person.other_user()) else {
            return Ok(());
        };
        let is_theirs = |path: &Path| {
            fs::metadata(path).is_ok_and(|metadata| metadata.uid() == uid || metadata.mode() & 0o005 == 0o005)
        };
        let parts = [layout.git_dir.path(), layout.common.path()];
        match parts
            .into_iter()
            .chain(layout.objects.iter().map(PathBuf::as_path))
            .find(|path| !is_theirs(path))
        {
            Some(path) => Err(Refusal::Foreign { path: self.path().to_owned(), git_dir: path.to_owned() }),
            None => Ok(()),
        }
    }
}

fn repository_of(path: &Path, own: &[PathBuf]) -> Result<Option<Layout>, Refusal> {
    if let Some(layout) = Layout::of(path, Trust::Owner)? {
        return Ok(Some(layout));
    }
    if is_bare(path) {
        return Err(Refusal::Bare(path.to_owned()));
    }
    // A home directory that is a repository, as some keep their settings, is not what its projects are parts of.
    let above = path.ancestors().skip(1).find(|above| begins_at(above));
    match above.filter(|above| forbidden(above, own).is_none()) {
        Some(top) => Err(Refusal::Part { path: path.to_owned(), top: top.to_owned() }),
        None => Ok(None),
    }
}

/// What a directory is that holds more than a project.
fn forbidden(path: &Path, own: &[PathBuf]) -> Option<&'static str> {
    const SYSTEM: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/etc"];
    let is_home =
        |home: PathBuf| home != Path::new("/") && fs::canonicalize(home).is_ok_and(|home| home == path);
    let homes = homes().into_iter().map(|(_, home)| home).chain(env::var_os("HOME").map(PathBuf::from));
    if path == Path::new("/") {
        return Some("the root of the file system");
    }
    if own.iter().any(|own| path.starts_with(own) || own.starts_with(path)) {
        return Some("a directory of agentbox's own, or holds one");
    }
    if SYSTEM.iter().any(|system| path.starts_with(system)) {
        return Some("a part of the system");
    }
    homes.into_iter().any(is_home).then_some("a home directory")
}

/// Where something is mounted below a directory: an overlay would show what lies under it instead.
fn mounted_below(path: &Path) -> Option<PathBuf> {
    let list = fs::read("/proc/self/mountinfo").ok()?;
    let points = list.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.map(unescaped).find(|point| point != path && point.starts_with(path))
}

/// A path as the kernel's list writes it: four characters are numbers in it.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let number = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_more_than_a_project_is_refused() {
        let own = [PathBuf::from("/home/me/.local/state/agentbox")];
        for path in
            ["/", "/home/me", "/home/me/.local/state/agentbox/sandboxes", "/proc/1", "/run/x", "/etc/x"]
        {
            assert!(forbidden(Path::new(path), &own).is_some(), "{path}");
        }
        assert_eq!(forbidden(Path::new("/home/me/project"), &own), None);
    }

    #[test]
    fn mount_points_are_read_as_they_are() {
        assert_eq!(unescaped(b"/a\\040b\\134c\\012"), Path::new("/a b\\c\n"));
        assert_eq!(unescaped(b"/a\\"), Path::new("/a\\"));
    }

    #[test]
    fn a_part_of_a_repository_names_its_top() {
        let tree = tempfile::tempdir().unwrap();
        let top = tree.path().canonicalize().unwrap();
        for part in [".git/objects", ".git/refs", "a/b"] {
            fs::create_dir_all(top.join(part)).unwrap();
        }
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(Owner::look_at(&top, &[]).unwrap().repository.is_some());
        let part = Owner::look_at(&top.join("a/b"), &[]).unwrap_err();
        assert!(part.hint().contains("--workdir /workspace/a/b"), "{}", part.hint());
        assert!(matches!(Owner::look_at(&top.join(".git"), &[]), Err(Refusal::Bare(_))));
    }
}
