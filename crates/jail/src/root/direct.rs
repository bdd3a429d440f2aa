//! The owner's tree itself, at /workspace and at its own path, with what is not for inside covered: every `.git` by one of
//! the sandbox's own, so that nothing leads to the owner's, and what holds secrets by something that cannot be read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use policy::{Cover, CoverWith};

use super::layered::{WORKSPACE, directory, owner_of, shows_at_its_own_path};
use super::owned::Mounts;
use crate::error::JailError;
use crate::step::{Bound, Owner, Place, Step, inside};

/// Where repositories are that a file leads to, each by its number.
const REPOSITORIES: &str = "/.agentbox/git";
/// A directory and a file that nobody can look into.
const CLOSED: &str = "/.agentbox/closed";
const CLOSED_FILE: &str = "/.agentbox/closed-file";
/// What holds nothing.
const EMPTY: &str = "/.agentbox/empty";
/// What of the sandbox's own is an empty file that cannot be read.
const CLOSED_NAME: &str = "../closed";
/// The files that lead to repositories, by the same numbers.
const LINKS_NAME: &str = "../links";

/// A tree of the owner's and what covers some of it.
#[derive(Clone, Copy, Debug)]
pub struct Direct<'host> {
    /// The owner's directory.
    pub owner: &'host Path,
    /// The directory of the repositories of ours, each at the path of the owner's.
    pub own: &'host Path,
    /// The object stores of its repositories, to read.
    pub stores: &'host [PathBuf],
    /// What is covered. What is deeper comes later.
    pub covers: &'host [Cover],
}

impl Mounts<'_> {
    /// Mounts it all.
    pub(super) fn add_direct(&mut self, direct: &Direct<'_>) -> Result<(), JailError> {
        let workspace = Path::new(WORKSPACE);
        let owner = owner_of(direct.owner)?;
        self.add_stores(direct.stores)?;
        self.push(directory(Path::new(REPOSITORIES))?);
        self.push(Step::Directory { path: inside(Path::new(CLOSED))?, mode: 0, owner: Owner::Builder });
        self.push(Step::File { path: inside(Path::new(CLOSED_FILE))?, contents: Vec::new() });
        self.bring(&direct.own.join(CLOSED_NAME), owner, Path::new(CLOSED_FILE), Bound::ReadOnly)?;

        self.bring(direct.owner, owner, workspace, Bound::ReadWrite)?;
        // Before anything is covered, so that what covers is seen through what is pinned.
        let pinned = direct.covers.iter().filter(|cover| cover.is_pinned());
        let pinned: Vec<PathBuf> = pinned.map(|cover| path_of(cover).to_owned()).collect();
        self.pin_above(workspace, &pinned)?;
        for (number, cover) in direct.covers.iter().enumerate() {
            let place = workspace.join(path_of(cover));
            match cover.with {
                CoverWith::Repository => {
                    self.bring(&direct.own.join(path_of(cover)), owner, &place, Bound::ReadWrite)?;
                }
                CoverWith::RepositoryFile => {
                    let led = Path::new(REPOSITORIES).join(number.to_string());
                    self.push(directory(&led)?);
                    self.bring(&direct.own.join(path_of(cover)), owner, &led, Bound::ReadWrite)?;
                    self.add_writable(&led);
                    // It has to be the agent's: git believes nobody else's.
                    let file = direct.own.join(LINKS_NAME).join(number.to_string());
                    self.bring(&file, owner, &place, Bound::ReadOnly)?;
                }
                CoverWith::Itself => self.cover_with(&place, &place)?,
                CoverWith::Nothing => self.cover_with(Path::new(EMPTY), &place)?,
                CoverWith::ClosedDirectory => self.cover_with(Path::new(CLOSED), &place)?,
                CoverWith::ClosedFile => self.cover_with(Path::new(CLOSED_FILE), &place)?,
                CoverWith::Null => {
                    let with = inside(Path::new("/dev/null"))?;
                    self.push(Step::Cover { with, path: inside(&place)? });
                }
            }
        }
        // All that covers comes along: nothing is ever at the one place and not at the other.
        if shows_at_its_own_path(direct.owner) {
            self.make_place(direct.owner, Place::Directory)?;
            let (source, path) = (inside(workspace)?, inside(direct.owner)?);
            self.push(Step::Bind { source, path, bound: Bound::ReadWrite });
            self.add_writable(direct.owner);
        }
        Ok(())
    }

    /// Shows something that is inside already at another place as well, to read only. Other than by `Step::Again`, flags
    /// that the host has set on its file systems stay.
    fn cover_with(&mut self, source: &Path, place: &Path) -> Result<(), JailError> {
        let (source, path) = (inside(source)?, inside(place)?);
        self.push(Step::Bind { source, path, bound: Bound::ReadOnly });
        Ok(())
    }
}

fn path_of(cover: &Cover) -> &Path {
    Path::new(OsStr::from_bytes(&cover.path))
}
