//! The owner's tree itself made ready for a sandbox: each repository in it gets one of ours to be covered by, and all that
//! is not for inside is listed. It is done before every start, as the tree may have changed between two; what somebody
//! inside may have written since the first is never read by git.

mod asked;
mod commits;
mod covers;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use policy::{CoverWith, SandboxId};

use crate::git::Git;
use crate::guest::{self, Stores};
use crate::hide::{self, Tracker};
use crate::layout::{Layout, Trust};
use crate::owner::Owner;
use crate::pin;
use crate::prepare::{Prepared, described, listed, prepared, put};
use crate::record::{Files, Mode, Recorded};
use crate::refs::Refs;
use crate::refusal::Refusal;
use crate::secrets::SecretList;
use crate::settings::{self, Settings};
use crate::survey::{self, Found};
use crate::upper::{Upper, path_of, unusable};

use asked::Asked;
pub use commits::apply_commits;
use covers::Covers;

/// A repository of the owner's in the tree that is understood.
struct Known<'layout> {
    /// Where it begins, relative to the tree.
    below: &'layout Path,
    layout: &'layout Layout,
    settings: Settings,
}

/// Makes everything below the sandbox's own directory that a start needs. The owner's tree is only read, but for the pin.
pub fn prepare_direct(
    files: &Files,
    id: &SandboxId,
    owner: &Owner,
    hidden: &SecretList,
) -> Result<Prepared, Refusal> {
    // Before anything is made: without it no commit could come back.
    Git::new(owner.path())?;
    let is_first = !files.recorded().exists();
    if is_first {
        DirBuilder::new().mode(0o700).create(files.review()).map_err(unusable(&files.review()))?;
    }
    let mut own = Upper::source(&files.upper(), owner)?;
    own.closed_file()?;
    let found = survey::survey(&owner.directory, hidden)?;
    let layouts = layouts(owner, &found);
    let known = understood(owner, &layouts)?;

    // Those that are bound already keep their numbers, which are written down inside.
    let mut stores = Stores { paths: prepared(files).map(|it| it.stores).unwrap_or_default() };
    let mut pinned = None;
    for known in &known {
        let refs = Refs::read(known.layout)?;
        if known.below.as_os_str().is_empty() && is_first {
            let repository = described(known.layout, &refs, &known.settings);
            pinned = Some(repository);
        }
        // One that the tree had not at the first start may be somebody's from inside: it is not looked at any further.
        if is_first {
            let Known { below, layout, settings } = known;
            guest::make(&mut own, below, &guest::Repository { layout, refs: &refs, settings }, &mut stores)?;
        }
    }
    let known: Vec<Known<'_>> =
        known.into_iter().filter(|known| own.place(known.below).join(".git").is_dir()).collect();
    if is_first {
        let (version, mode) = (Recorded::VERSION, Mode::Direct);
        let commit = pinned.as_ref().and_then(|repository| repository.head.commit.clone());
        let recorded = Recorded { version, mode, owner: owner.path().to_owned(), repository: pinned };
        // Before the pin: whoever removes the sandbox finds it by this.
        recorded.write(files).map_err(unusable(&files.recorded()))?;
        if let (Some(layout), Some(commit)) = (&owner.repository, commit) {
            pin::pin(layout, owner, id, &commit)?;
        }
    }

    let asked = known.iter().enumerate().map(|(number, known)| Asked::make(files, number, known));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let trackers: Vec<Tracker> = known
        .iter()
        .zip(&asked)
        .map(|(known, asked)| Tracker { below: known.below.to_owned(), git: asked.git.clone() })
        .collect();
    let secret = hide::list(&found, &trackers)?;
    let mut covers = Covers::new(owner);
    covers.add_repositories(&found, &known)?;
    for (known, asked) in known.iter().zip(&asked) {
        covers.add_submodules(known, &asked.submodules()?)?;
    }
    covers.add_hidden(&secret);
    let covers = covers.finish()?;
    let led = covers.iter().enumerate().filter(|(_, cover)| cover.with == CoverWith::RepositoryFile);
    own.links(led.map(|(number, _)| number))?;

    if is_first {
        let paths: Vec<PathBuf> = covers.iter().map(|cover| path_of(&cover.path).to_owned()).collect();
        put(&files.covers(), &listed(&paths))?;
    }
    // A link is not covered, and can be a change.
    let covered: BTreeSet<&Path> = covers.iter().map(|cover| path_of(&cover.path)).collect();
    let is_covered = |path: &PathBuf| covered.contains(path.as_path());
    let hidden: Vec<PathBuf> = secret.into_iter().filter(is_covered).collect();
    put(&files.hidden(), &listed(&hidden))?;
    put(&files.stores(), &listed(&stores.paths))?;
    let covered = found.special.iter().map(|path| owner.path().join(path_of(path))).collect();
    Ok(Prepared { stores: stores.paths, covered, covers })
}

/// The repositories that were found in the tree, as far as they lie in what is shown anyway.
fn layouts(owner: &Owner, found: &Found) -> Vec<(PathBuf, Layout)> {
    let common = owner.repository.as_ref().map(|layout| layout.common.path());
    let within: Vec<&Path> = [Some(owner.path()), common].into_iter().flatten().collect();
    let mut stores = 0;
    let layouts = found.repositories.iter().filter_map(|below| {
        let below = path_of(below).to_owned();
        let layout = Layout::of(&owner.path().join(&below), Trust::Found(&within)).ok().flatten()?;
        Refs::read(&layout).ok()?;
        stores += layout.objects.len();
        let is_text = layout.objects.iter().all(|store| store.to_str().is_some());
        (is_text && Stores::default().have_room(stores)).then_some((below, layout))
    });
    layouts.collect()
}

/// Those whose configuration is understood, the tree's own first. That one has to be.
fn understood<'layout>(
    owner: &'layout Owner,
    layouts: &'layout [(PathBuf, Layout)],
) -> Result<Vec<Known<'layout>>, Refusal> {
    let mut known = Vec::new();
    if let Some(layout) = &owner.repository {
        if let Some(store) = layout.objects.iter().find(|store| store.to_str().is_none()) {
            let what = format!("the path of '{}' is not valid UTF-8", store.display());
            return Err(Refusal::Format { path: layout.top.clone(), what });
        }
        known.push(Known { below: Path::new(""), layout, settings: Settings::read(layout, owner)? });
    }
    for (below, layout) in layouts {
        if let Ok(settings) = settings::of_found(layout, owner) {
            known.push(Known { below, layout, settings });
        }
    }
    Ok(known)
}

/// What something in the tree is, if it is still there.
fn look(owner: &Owner, below: &Path) -> Option<fs::FileType> {
    fs::symlink_metadata(owner.path().join(below)).ok().map(|metadata| metadata.file_type())
}
