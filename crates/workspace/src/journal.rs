//! Moves prepared files into the owner's tree, all or none, also when it is cut off: where it prepares is written down
//! first, then what it will do, then that it is done. What is not done is undone by whoever comes next.
//!
//! Nothing of the owner's is ever written over or deleted before it is done: it changes places with what is new.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use failpoint::Point;
use serde::{Deserialize, Serialize};

use crate::error::ReviewError;
use crate::inert::inert_name;
use crate::mover::{Mover, Undone};
use crate::plan::Plan;
use crate::store::{Store, write_whole};

/// The file of ours that says where an apply prepares.
const JOURNAL: &str = "journal";
const PLAN: &str = "plan";
const DONE: &str = "done";

/// Where an apply prepares.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    place: PathBuf,
}

/// An apply that is under way.
pub(crate) struct Journal<'a> {
    store: &'a Store,
    place: PathBuf,
}

impl<'a> Journal<'a> {
    /// Makes a place on the file system of the owner's tree.
    pub(crate) fn begin(store: &'a Store, id: &str) -> Result<Self, ReviewError> {
        let place = place(store, id)?;
        let begun = serde_json::to_vec(&Begun { place: place.clone() }).map_err(io::Error::from);
        let path = store.own(JOURNAL);
        begun.and_then(|text| write_whole(&path, &text)).map_err(ReviewError::file(&path))?;
        failpoint::pass(Point::ReviewJournalBegun);
        let journal = Self { store, place };
        let failed = ReviewError::file(&journal.place);
        let made = remove(&journal.place).and_then(|()| {
            DirBuilder::new().mode(0o700).create(&journal.place)?;
            fs::create_dir(journal.place.join("old"))?;
            fs::create_dir(journal.place.join("new"))
        });
        made.map_err(|error| {
            journal.close();
            failed(error)
        })?;
        Ok(journal)
    }

    /// The directory for what is new.
    pub(crate) fn new_files(&self) -> PathBuf {
        self.place.join("new")
    }

    /// Does it, or leaves everything as it was.
    pub(crate) fn run(&self, plan: &Plan) -> Result<(), ReviewError> {
        let done = self.steps(plan);
        if done.is_err() {
            // What cannot be undone stays where it is, and whoever comes next is told.
            undo(self.store, &self.place)?;
            return done;
        }
        let path = self.place.join(DONE);
        if let Err(error) = write_whole(&path, b"") {
            undo(self.store, &self.place)?;
            return Err(ReviewError::file(&path)(error));
        }
        failpoint::pass(Point::ReviewDone);
        Ok(())
    }

    fn steps(&self, plan: &Plan) -> Result<(), ReviewError> {
        let failed = ReviewError::file(&self.place);
        let place: OwnedFd = File::open(&self.place).map_err(failed)?.into();
        failpoint::attempt(Point::ReviewStaged).map_err(failed)?;
        let text = serde_json::to_vec(plan).map_err(io::Error::from).map_err(failed)?;
        write_whole(&self.place.join(PLAN), &text).map_err(failed)?;
        failpoint::attempt(Point::ReviewPlanned).map_err(failed)?;
        let mover = Mover::new(&self.store.recorded.owner, place)?;
        // Everything that is new is on the disk before anything old is moved.
        mover.sync_new(plan).map_err(failed)?;
        for (number, step) in plan.steps.iter().enumerate() {
            mover.take(number, step)?;
            failpoint::attempt(Point::ReviewMoved).map_err(failed)?;
        }
        mover.sync(plan).map_err(failed)?;
        failpoint::attempt(Point::ReviewAllMoved).map_err(failed)
    }

    /// Forgets what was prepared, and what went aside.
    pub(crate) fn close(&self) {
        if remove(&self.place).is_ok() {
            let _ = fs::remove_file(self.store.own(JOURNAL));
        }
    }
}

/// In the owner's repository, where nothing looks; in their tree where that is on another file system, or not theirs.
fn place(store: &Store, id: &str) -> Result<PathBuf, ReviewError> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = &store.recorded.owner;
    let device = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.dev());
    if device(owner).is_none() {
        return Err(ReviewError::OwnerGone(owner.clone()));
    }
    let git = store.recorded.repository.as_ref().map(|repository| &repository.git_dir);
    Ok(match git.filter(|git| device(git) == device(owner)) {
        Some(git) => git.join(format!("agentbox-apply-{id}")),
        None => owner.join(format!(".agentbox-apply-{id}")),
    })
}

/// Undoes an apply that was cut off, or forgets one that was done.
pub(crate) fn recover(store: &Store) -> Result<(), ReviewError> {
    let path = store.own(JOURNAL);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(ReviewError::file(&path))?,
    };
    let begun: Begun =
        serde_json::from_slice(&text).map_err(|error| ReviewError::file(&path)(error.into()))?;
    undo(store, &begun.place)
}

/// Makes everything as it was unless it is done, and forgets it.
fn undo(store: &Store, place: &Path) -> Result<(), ReviewError> {
    let failed = ReviewError::file(place);
    let path = place.join(PLAN);
    let mut edited = None;
    if !place.join(DONE).exists() && path.exists() {
        let text = fs::read(&path).map_err(failed)?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        let mover = Mover::new(&store.recorded.owner, File::open(place).map_err(failed)?.into())?;
        for (number, step) in plan.steps.iter().enumerate().rev() {
            if mover.undo(number, step)? == Undone::Edited {
                edited = Some(step.path().to_vec());
            }
        }
        mover.sync(&plan).map_err(failed)?;
        failpoint::pass(Point::ReviewUndone);
    }
    if let Some(edited) = edited {
        // The owner has gone on from there: both are kept, and this is said once.
        let kept = place.with_extension("kept");
        remove(&kept).and_then(|()| fs::rename(place, &kept)).map_err(failed)?;
        let _ = fs::remove_file(store.own(JOURNAL));
        return Err(ReviewError::Recovery(inert_name(&edited), kept));
    }
    remove(place).map_err(failed)?;
    let path = store.own(JOURNAL);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ReviewError::file(&path)(error)),
        _ => Ok(()),
    }
}

fn remove(place: &Path) -> io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
