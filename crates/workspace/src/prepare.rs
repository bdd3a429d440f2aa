//! The owner's tree made ready for a sandbox, in one straight line: what the repository is, a walk over the tree, the
//! `.git` inside, what is absent inside, and what is on file of it all.

use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use policy::{Cover, SandboxId};

use crate::git::Git;
use crate::guest::{self, Stores};
use crate::hide::{self, Tracker};
use crate::layout::{Layout, Trust};
use crate::owner::Owner;
use crate::pin;
use crate::record::{Files, Mode, Recorded, Repository};
use crate::refs::Refs;
use crate::refusal::Refusal;
use crate::secrets::SecretList;
use crate::settings::{self, Settings};
use crate::survey::{self, Found};
use crate::upper::{Upper, path_of, unusable};

/// A tree that is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The object stores to bind inside, each at its number.
    pub stores: Vec<PathBuf>,
    /// Sockets, pipes and devices of the host's that are absent inside.
    pub covered: Vec<PathBuf>,
    /// What is covered, where the tree itself is inside.
    pub covers: Vec<Cover>,
}

/// What is known of the repository when the tree has been walked over; its `.git` inside has been made.
struct Known {
    refs: Refs,
    settings: Settings,
    stores: Stores,
}

/// Makes everything below the sandbox's own directory that a start needs. The owner's tree is only read, but for the pin.
pub fn prepare(
    files: &Files,
    id: &SandboxId,
    owner: &Owner,
    hidden: &SecretList,
) -> Result<Prepared, Refusal> {
    // Before anything is made: without it no change could come back.
    Git::new(owner.path())?;
    DirBuilder::new().mode(0o700).create(files.review()).map_err(unusable(&files.review()))?;
    let mut upper = Upper::make(&files.upper(), &files.work(), owner)?;

    // The repository is read while the tree is walked over.
    let (known, found) = thread::scope(|scope| {
        let known = scope.spawn(|| match &owner.repository {
            Some(layout) => Known::read(layout, owner, &mut upper).map(Some),
            None => Ok(None),
        });
        let found = survey::survey(&owner.directory, hidden);
        (known.join().unwrap_or_else(|_| Err(interrupted(owner))), found)
    });
    let (mut known, found) = (known?, found?);

    // Before the pin: whoever removes the sandbox finds it by this.
    let recorded = Recorded {
        version: Recorded::VERSION,
        mode: Mode::Review,
        owner: owner.path().to_owned(),
        repository: owner
            .repository
            .as_ref()
            .zip(known.as_ref())
            .map(|(layout, Known { refs, settings, .. })| described(layout, refs, settings)),
    };
    recorded.write(files).map_err(unusable(&files.recorded()))?;

    let pinned = known.as_ref().and_then(|known| known.refs.stands_at().commit);
    let (pinned, absent) = thread::scope(|scope| {
        let pinned = owner
            .repository
            .as_ref()
            .zip(pinned)
            .map(|(layout, commit)| scope.spawn(move || pin::pin(layout, owner, id, &commit)));
        let absent = leave_out(&mut upper, owner, &found, known.as_mut());
        (pinned.map_or(Ok(()), |it| it.join().unwrap_or_else(|_| Err(interrupted(owner)))), absent)
    });
    let (absent, stores) = absent?;
    pinned?;
    upper.finish()?;

    put(&files.hidden(), &listed(&absent))?;
    put(&files.stores(), &listed(&stores.paths))?;
    let covered = found.special.iter().map(|path| owner.path().join(path_of(path))).collect();
    Ok(Prepared { stores: stores.paths, covered, covers: Vec::new() })
}

/// What was prepared when the sandbox was made, for another start.
pub fn prepared(files: &Files) -> std::io::Result<Prepared> {
    let list = fs::read(files.stores())?;
    let stores = list.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let stores = stores.map(|path| path_of(path).to_owned()).collect();
    Ok(Prepared { stores, ..Prepared::default() })
}

impl Known {
    /// Reads the repository, and makes the one inside.
    fn read(layout: &Layout, owner: &Owner, upper: &mut Upper<'_>) -> Result<Self, Refusal> {
        let settings = Settings::read(layout, owner)?;
        let refs = Refs::read(layout)?;
        if let Some(store) = layout.objects.iter().find(|store| store.to_str().is_none()) {
            let what = format!("the path of '{}' is not valid UTF-8", store.display());
            return Err(Refusal::Format { path: layout.top.clone(), what });
        }
        let mut stores = Stores::default();
        let repository = guest::Repository { layout, refs: &refs, settings: &settings };
        guest::make(upper, Path::new(""), &repository, &mut stores)?;
        Ok(Self { refs, settings, stores })
    }
}

/// A repository as it is written down.
pub(crate) fn described(layout: &Layout, refs: &Refs, settings: &Settings) -> Repository {
    Repository {
        git_dir: layout.git_dir.path().to_owned(),
        common_dir: layout.common.path().to_owned(),
        objects: layout.objects.clone(),
        object_format: settings.object_format(),
        head: refs.stands_at(),
    }
}

fn interrupted(owner: &Owner) -> Refusal {
    let source = std::io::Error::other("a thread of ours was lost");
    Refusal::Unusable { path: owner.path().to_owned(), source }
}

/// Leaves out of the tree what is not for inside: the paths, and all object stores that are.
fn leave_out(
    upper: &mut Upper<'_>,
    owner: &Owner,
    found: &Found,
    known: Option<&mut Known>,
) -> Result<(Vec<PathBuf>, Stores), Refusal> {
    let mut stores = known.map(|known| std::mem::take(&mut known.stores)).unwrap_or_default();
    let top = owner.repository.as_ref();
    let mut trackers = Vec::new();
    if let Some(layout) = top {
        let below = PathBuf::new();
        trackers.push(Tracker { git: hide::git_of(upper, &below, &layout.objects)?, below });
    }
    let mut absent = add_found(upper, owner, found, (&mut stores, &mut trackers))?;
    absent.extend(hide::hide(upper, owner, found, &trackers)?);
    Ok((absent, stores))
}

/// Gives each repository that was found in the tree a `.git` of ours, submodules included; one that is not understood,
/// or leads elsewhere, has none inside. Which those are is returned.
fn add_found(
    upper: &mut Upper<'_>,
    owner: &Owner,
    found: &Found,
    (stores, trackers): (&mut Stores, &mut Vec<Tracker>),
) -> Result<Vec<PathBuf>, Refusal> {
    let common = owner.repository.as_ref().map(|layout| layout.common.path());
    let within: Vec<&Path> = [Some(owner.path()), common].into_iter().flatten().collect();
    let in_secret =
        |path: &Path| found.secret_directories.iter().any(|secret| path.starts_with(path_of(secret)));
    let mut absent = Vec::new();
    for below in found.repositories.iter().map(|path| path_of(path)).filter(|path| !in_secret(path)) {
        let layout = Layout::of(&owner.path().join(below), Trust::Found(&within)).ok().flatten();
        let layout = layout.filter(|layout| {
            stores.have_room(layout.objects.len())
                && layout.objects.iter().all(|store| store.to_str().is_some())
        });
        let read = layout.as_ref().and_then(|layout| {
            Some((layout, Refs::read(layout).ok()?, settings::of_found(layout, owner).ok()?))
        });
        match read {
            Some((layout, refs, settings)) => {
                let repository = guest::Repository { layout, refs: &refs, settings: &settings };
                guest::make(upper, below, &repository, stores)?;
                let git = hide::git_of(upper, below, &layout.objects)?;
                trackers.push(Tracker { below: below.to_owned(), git });
            }
            None => {
                let path = below.join(".git");
                upper.hide(&path)?;
                absent.push(path);
            }
        }
    }
    Ok(absent)
}

/// Paths, each ended by a NUL.
pub(crate) fn listed(paths: &[PathBuf]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0])).collect()
}

pub(crate) fn put(path: &Path, contents: &[u8]) -> Result<(), Refusal> {
    fs::write(path, contents).map_err(unusable(path))
}
