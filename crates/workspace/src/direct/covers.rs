//! What is covered in the owner's tree, and with what. A repository that were missed here could be written inside, and the
//! owner's next git command would run what it says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use policy::{Cover, CoverWith};

use super::{Known, look};
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::survey::Found;
use crate::upper::path_of;

/// Each is a mount or two, at two places.
const MOST: usize = 4000;

pub(super) struct Covers<'owner> {
    owner: &'owner Owner,
    all: BTreeMap<PathBuf, CoverWith>,
}

impl<'owner> Covers<'owner> {
    pub(super) fn new(owner: &'owner Owner) -> Self {
        Self { owner, all: BTreeMap::new() }
    }

    /// What was said first counts.
    fn add(&mut self, path: &Path, with: CoverWith) {
        self.all.entry(path.to_owned()).or_insert(with);
    }

    fn uncoverable(&self, below: &Path, what: &'static str) -> Refusal {
        Refusal::Uncoverable { path: self.owner.path().to_owned(), below: below.to_owned(), what }
    }

    /// Every repository, understood or not, under whatever name.
    pub(super) fn add_repositories(&mut self, found: &Found, known: &[Known<'_>]) -> Result<(), Refusal> {
        let nested = found.repositories.iter().map(|below| path_of(below));
        for below in [Path::new("")].into_iter().chain(nested) {
            let path = below.join(".git");
            let is_known = known.iter().any(|known| known.below == below);
            match look(self.owner, &path) {
                None => {}
                Some(kind) if kind.is_dir() => {
                    self.add(&path, if is_known { CoverWith::Repository } else { CoverWith::Nothing });
                }
                Some(kind) if kind.is_file() => {
                    self.add(&path, if is_known { CoverWith::RepositoryFile } else { CoverWith::ClosedFile });
                    self.add_led(&path);
                }
                // A mount would be put on what it leads to, and the link itself could be replaced.
                Some(_) => return Err(self.uncoverable(&path, "is a link, or no directory or file")),
            }
        }
        for known in known {
            for directory in [known.layout.git_dir.path(), known.layout.common.path()] {
                self.add_within(directory, CoverWith::Nothing);
            }
            let home = self.owner.person.home();
            for obeyed in known.settings.obeyed(known.layout, home.as_deref()) {
                self.add_within(&obeyed, CoverWith::Itself);
            }
        }
        for bare in &found.bare {
            self.add(path_of(bare), CoverWith::Itself);
        }
        Ok(())
    }

    /// What a `.git` that is a file leads to, where that is in the tree itself.
    fn add_led(&mut self, file: &Path) {
        let path = self.owner.path().join(file);
        let text = self.owner.directory.read(file, 1 << 16).ok().flatten().unwrap_or_default();
        let led = text.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
        if let (Some(led), Some(top)) = (led, path.parent()) {
            self.add_within(&top.join(path_of(led)), CoverWith::Nothing);
        }
    }

    /// Something by its path on the host, if it is in the tree and not the whole of it.
    fn add_within(&mut self, path: &Path, with: CoverWith) {
        let Ok(real) = fs::canonicalize(path) else { return };
        if let Ok(below) = real.strip_prefix(self.owner.path())
            && !below.as_os_str().is_empty()
        {
            self.add(below, with);
        }
    }

    /// Submodules that are not checked out. Nobody has a repository there, and who makes one has it run by the owner's
    /// `git status` above: git looks into every submodule that has one.
    pub(super) fn add_submodules(&mut self, known: &Known<'_>, paths: &[PathBuf]) -> Result<(), Refusal> {
        for path in paths {
            let path = known.below.join(path);
            if self.all.contains_key(&path.join(".git")) {
                continue;
            }
            match look(self.owner, &path) {
                Some(kind) if kind.is_dir() || kind.is_file() => self.add(&path, CoverWith::Itself),
                Some(_) => return Err(self.uncoverable(&path, "is a submodule, and a link is in its place")),
                None => return Err(self.uncoverable(&path, "is a submodule, and its directory is missing")),
            }
        }
        Ok(())
    }

    /// What holds secrets, what cannot be looked into, sockets, pipes and devices. A link says nothing itself.
    pub(super) fn add_hidden(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let with = match look(self.owner, path) {
                Some(kind) if kind.is_dir() => CoverWith::ClosedDirectory,
                Some(kind) if kind.is_file() => CoverWith::ClosedFile,
                Some(kind)
                    if kind.is_socket()
                        || kind.is_fifo()
                        || kind.is_char_device()
                        || kind.is_block_device() =>
                {
                    CoverWith::Null
                }
                _ => continue,
            };
            self.add(path, with);
        }
    }

    /// All of them, what is deeper later. What lies below something that hides it has nothing to be put on.
    pub(super) fn finish(self) -> Result<Vec<Cover>, Refusal> {
        let hides = |path: &Path| self.all.get(path).is_some_and(|with| *with != CoverWith::Itself);
        let shown = self.all.iter().filter(|(path, _)| !path.ancestors().skip(1).any(hides));
        let covers: Vec<Cover> = shown
            .map(|(path, with)| Cover { path: path.as_os_str().as_bytes().to_vec(), with: *with })
            .collect();
        if covers.len() > MOST {
            return Err(Refusal::TooMuchToCover { path: self.owner.path().to_owned(), most: MOST });
        }
        Ok(covers)
    }
}
