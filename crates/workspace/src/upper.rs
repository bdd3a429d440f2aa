//! The layer before the sandbox starts: what is absent inside, and what is there in the place of the owner's. Nobody
//! inside has written to it yet. Whatever is made here belongs to the owner on disk. Where the tree itself is inside,
//! repositories of ours are made in the same way and bound over the owner's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use rustix::process::geteuid;

use crate::owner::Owner;
use crate::refusal::Refusal;

/// The mark of a directory that shows nothing of what lies under it.
const OPAQUE: (&str, &[u8]) = ("user.overlay.opaque", b"y");

/// Where repositories show inside that a file leads to.
const REPOSITORIES: &str = "/.agentbox/git";

/// The layer of one sandbox.
pub(crate) struct Upper<'owner> {
    root: PathBuf,
    owner: &'owner Owner,
    kind: Kind,
    /// Directories that stand for the owner's, and when those were changed.
    mirrored: BTreeMap<PathBuf, SystemTime>,
}

/// What a layer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It is laid over the owner's tree.
    Overlay,
    /// Repositories of ours are bound from it, one by one; nothing else of it is ever inside.
    Source,
}

impl<'owner> Upper<'owner> {
    /// One to bind repositories from, which may be there already.
    pub(crate) fn source(root: &Path, owner: &'owner Owner) -> Result<Self, Refusal> {
        let upper = Self { root: root.to_owned(), owner, kind: Kind::Source, mirrored: BTreeMap::new() };
        for directory in [root.parent().unwrap_or(root), root] {
            upper.own_directory(directory)?;
        }
        Ok(upper)
    }

    /// A directory that only its owner may look into.
    fn own_directory(&self, place: &Path) -> Result<(), Refusal> {
        match DirBuilder::new().mode(0o700).create(place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(unusable(place)).and_then(|()| self.own(place)),
        }
    }

    /// Makes an empty one at `root`, with what the kernel needs beside it.
    pub(crate) fn make(root: &Path, work: &Path, owner: &'owner Owner) -> Result<Self, Refusal> {
        let layer = root.parent().unwrap_or(root);
        for directory in [layer, root, work] {
            DirBuilder::new().mode(0o700).create(directory).map_err(unusable(directory))?;
        }
        let mut upper = Self { root: root.to_owned(), owner, kind: Kind::Overlay, mirrored: BTreeMap::new() };
        for directory in [layer, work] {
            upper.own(directory)?;
        }
        upper.mirror(Path::new(""))?;
        Ok(upper)
    }

    /// Where something of the layer is on the host.
    pub(crate) fn place(&self, relative: &Path) -> PathBuf {
        self.root.join(relative)
    }

    /// Sees to it that a directory of the owner's can hold something: it looks the same as without.
    pub(crate) fn mirror(&mut self, relative: &Path) -> Result<(), Refusal> {
        if self.mirrored.contains_key(relative) {
            return Ok(());
        }
        let place = self.place(relative);
        if self.kind == Kind::Source {
            return match relative.parent() {
                Some(parent) => self.mirror(parent).and_then(|()| self.own_directory(&place)),
                None => Ok(()),
            };
        }
        if let Some(parent) = relative.parent() {
            self.mirror(parent)?;
            DirBuilder::new().mode(0o700).create(&place).map_err(unusable(&place))?;
        }
        let theirs = self.owner.path().join(relative);
        let metadata = fs::symlink_metadata(&theirs).map_err(unusable(&theirs))?;
        fs::set_permissions(&place, Permissions::from_mode(metadata.mode() & 0o7777))
            .map_err(unusable(&place))?;
        if geteuid().is_root() {
            lchown(&place, Some(metadata.uid()), Some(metadata.gid())).map_err(unusable(&place))?;
        }
        let changed = metadata.modified().map_err(unusable(&theirs))?;
        self.mirrored.insert(relative.to_owned(), changed);
        Ok(())
    }

    /// Makes something of the owner's absent.
    pub(crate) fn hide(&mut self, relative: &Path) -> Result<(), Refusal> {
        self.mirror(relative.parent().unwrap_or(Path::new("")))?;
        let place = self.place(relative);
        mknodat(CWD, &place, FileType::CharacterDevice, Mode::empty(), 0)
            .map_err(|errno| unusable(&place)(errno.into()))?;
        self.own(&place)
    }

    /// A new directory in the place of whatever the owner has there.
    pub(crate) fn replace(&mut self, relative: &Path) -> Result<(), Refusal> {
        self.mirror(relative.parent().unwrap_or(Path::new("")))?;
        self.directory(relative)?;
        if self.kind == Kind::Source {
            return Ok(());
        }
        let place = self.place(relative);
        setxattr(&place, OPAQUE.0, OPAQUE.1, XattrFlags::empty())
            .map_err(|errno| unusable(&place)(errno.into()))
    }

    /// A directory in such a one.
    pub(crate) fn directory(&self, relative: &Path) -> Result<(), Refusal> {
        let place = self.place(relative);
        match DirBuilder::new().mode(0o755).create(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made.map_err(unusable(&place))?,
        }
        fs::set_permissions(&place, Permissions::from_mode(0o755)).map_err(unusable(&place))?;
        self.own(&place)
    }

    /// A file in such a one.
    pub(crate) fn file(&self, relative: &Path, contents: &[u8]) -> Result<(), Refusal> {
        let place = self.place(relative);
        let written = File::create_new(&place).and_then(|mut file| file.write_all(contents));
        written.map_err(unusable(&place))?;
        self.own(&place)
    }

    /// A copy of an open file, with the time of its last change: git tells by that of its index which entries it may
    /// believe.
    pub(crate) fn copy(&self, relative: &Path, mut from: &File) -> Result<(), Refusal> {
        let place = self.place(relative);
        let copied = File::create_new(&place).and_then(|mut file| {
            io::copy(&mut from, &mut file)?;
            file.set_modified(from.metadata()?.modified()?)
        });
        copied.map_err(unusable(&place))?;
        self.own(&place)
    }

    /// An empty file beside it all that nobody can read, its owner neither.
    pub(crate) fn closed_file(&self) -> Result<(), Refusal> {
        let place = self.root.with_file_name("closed");
        match File::options().write(true).create_new(true).mode(0o000).open(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(unusable(&place)).and_then(|_| self.own(&place)),
        }
    }

    /// Files beside it all that lead to repositories, each by the number of the one that it leads to.
    pub(crate) fn links(&self, numbers: impl Iterator<Item = usize>) -> Result<(), Refusal> {
        let links = self.root.with_file_name("links");
        self.own_directory(&links)?;
        for number in numbers {
            let place = links.join(number.to_string());
            fs::write(&place, format!("gitdir: {REPOSITORIES}/{number}\n")).map_err(unusable(&place))?;
            self.own(&place)?;
        }
        Ok(())
    }

    fn own(&self, place: &Path) -> Result<(), Refusal> {
        if !geteuid().is_root() {
            return Ok(());
        }
        lchown(place, Some(self.owner.person.uid), Some(self.owner.person.gid)).map_err(unusable(place))
    }

    /// Gives the directories that stand for the owner's their times, which what was put into them has changed.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        for (relative, changed) in self.mirrored.iter().rev() {
            let place = self.place(relative);
            let set = File::open(&place).and_then(|directory| directory.set_modified(*changed));
            set.map_err(unusable(&place))?;
        }
        Ok(())
    }
}

/// A path of bytes, relative to the tree.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

pub(crate) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Refusal + use<> {
    let path = path.to_owned();
    move |source| Refusal::Layer { path, source }
}
