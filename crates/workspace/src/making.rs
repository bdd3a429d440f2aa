//! Makes the tree of what a walk has found. Files are read beneath the layer, each once, and handed to git as they are. Only
//! what has a carriage return in it can be something else as a blob, by the attributes that hold inside: git is asked about
//! that in a tree of ours, which holds those files and the attributes.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::io::Errno;

use crate::base::Base;
use crate::error::ReviewError;
use crate::import::Import;
use crate::inert::inert_name;
use crate::layer::{Directory, notes};
use crate::limits::Limits;
use crate::listing::{Listing, is_attributes};
use crate::remark::{Remark, Why};
use crate::seen::Seen;
use crate::staging::{self, Staging};
use crate::store::Store;
use crate::walk::{Walked, Written};

/// The index of what has to be converted.
const INDEX: &str = "index-now";
/// What is larger is not held in memory.
const SMALL: u64 = 1 << 20;
/// As much of that is looked through at once.
const PIECE: usize = 256 << 10;

/// What is read, and where it is put where git has to look at it.
pub(crate) struct Making<'a> {
    pub(crate) store: &'a Store,
    pub(crate) base: &'a Base,
    pub(crate) top: &'a Directory,
    /// Whether it is a layer, and not a tree that was worked on directly.
    pub(crate) is_layer: bool,
    pub(crate) staging: &'a mut Staging,
}

/// A file or a link, read.
struct Taken {
    seen: Seen,
    content: Content,
    /// Whether there is a carriage return in it: without one no conversion of git's changes anything.
    has_return: bool,
}

/// What a file holds.
enum Content {
    /// All of it.
    Bytes(Vec<u8>),
    /// A copy of ours that has no name.
    Copy(File),
}

/// A tree that was made.
pub(crate) struct Made {
    pub(crate) tree: String,
    /// Whether every file was as it had been seen.
    pub(crate) is_whole: bool,
}

impl Making<'_> {
    /// Makes it. What cannot be read, or is something else by now, is left out and named.
    pub(crate) fn run(mut self, walked: &mut Walked) -> Result<Made, ReviewError> {
        let git = self.store.git()?.unsynced();
        let mut import = Import::begin(&git, self.base.beginning())?;
        for path in &walked.removed {
            import.remove(path);
        }
        let trust = self.store.trust()?;
        let review = self.store.files.review();
        let of_ours = ReviewError::file(&review);
        let (mut is_whole, mut lost, mut converted) = (true, Vec::new(), Vec::new());
        let mut most = Limits::default().bytes;
        for (path, written) in &mut walked.written {
            let before = self.base.listing.get(path).map(|entry| entry.mode.as_str());
            let taken = match written {
                Written::Link(_) => self.link(path)?,
                Written::File(_) => self.file(path, most)?,
            };
            let Some(taken) = taken else {
                lost.push(path.clone());
                continue;
            };
            most = most.saturating_sub(taken.seen.size);
            is_whole &= taken.seen == *written.seen();
            let mode = match written {
                Written::Link(_) => "120000",
                Written::File(_) => trust.mode(before, taken.seen.is_executable()),
            };
            if taken.has_return || is_attributes(path) {
                self.stage(path, &taken)?;
            }
            match &taken.content {
                _ if taken.has_return => converted.push((path.clone(), mode)),
                Content::Bytes(bytes) => import.write(path, mode, bytes),
                Content::Copy(copy) => import.write_file(path, mode, copy).map_err(of_ours)?,
            }
            let seen = taken.seen;
            *written = match written {
                Written::File(_) => Written::File(seen),
                Written::Link(_) => Written::Link(seen),
            };
        }
        self.convert(&converted, walked, &mut import)?;
        for (path, commit) in &walked.pointers {
            import.put(path, "160000", commit);
        }
        is_whole &= lost.is_empty();
        for path in lost {
            walked.written.remove(&path);
            walked.remarks.push(Remark { path, why: Why::Closed });
        }
        Ok(Made { tree: import.finish()?, is_whole })
    }

    fn link(&self, path: &[u8]) -> Result<Option<Taken>, ReviewError> {
        match self.top.link(path) {
            Ok((target, stat)) => {
                let (seen, content) = (Seen::of(&stat), Content::Bytes(target));
                Ok(Some(Taken { seen, content, has_return: false }))
            }
            Err(errno) => lost(path, errno),
        }
    }

    /// Not more than `most` bytes of a file are read.
    fn file(&self, path: &[u8], most: u64) -> Result<Option<Taken>, ReviewError> {
        let (mut file, stat) = match self.top.file(path) {
            Ok(found) => found,
            Err(errno) => return lost(path, errno),
        };
        if self.is_layer && notes(&file).is_elsewhere {
            return Err(ReviewError::Layer(inert_name(path)));
        }
        let failed = |error: io::Error| ReviewError::File { path: inert_name(path).into(), source: error };
        let mut seen = Seen::of(&stat);
        if seen.size <= SMALL {
            let mut bytes = Vec::new();
            (&file).take(SMALL + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 <= SMALL.min(most) {
                seen.size = bytes.len() as u64;
                let has_return = bytes.contains(&b'\r');
                return Ok(Some(Taken { seen, content: Content::Bytes(bytes), has_return }));
            }
            // It has grown meanwhile.
            file.rewind().map_err(failed)?;
        }
        let place = self.store.own("large");
        let copied = copy(&file, &place, most).map_err(ReviewError::file(&place))?;
        let Some((copy, length, has_return)) = copied else {
            return Err(ReviewError::TooMuch { what: "bytes", most: Limits::default().bytes });
        };
        seen.size = length;
        Ok(Some(Taken { seen, content: Content::Copy(copy), has_return }))
    }

    fn stage(&mut self, path: &[u8], taken: &Taken) -> Result<(), ReviewError> {
        let is_executable = taken.seen.is_executable();
        match &taken.content {
            Content::Bytes(bytes) => self.staging.bytes(path, bytes, is_executable),
            Content::Copy(copy) => {
                self.staging.file(path, copy, is_executable, u64::MAX)?;
                let mut copy = copy;
                copy.rewind().map_err(ReviewError::file(self.staging.path()))
            }
        }
    }

    /// Has git convert what it has to look at, with the attributes that hold inside.
    fn convert(
        &self,
        converted: &[(Vec<u8>, &'static str)],
        walked: &Walked,
        import: &mut Import,
    ) -> Result<(), ReviewError> {
        if converted.is_empty() {
            return Ok(());
        }
        let index = self.store.copy_of_base(INDEX)?;
        let git = self.store.git()?.unsynced().on(self.staging.path()).with_index(&index);
        // What is gone goes first: attributes that are gone count no more for what is written.
        let gone = walked.removed.iter().chain(walked.written.keys()).filter(|path| is_attributes(path));
        let mut lines = Vec::new();
        for path in gone.chain(converted.iter().map(|(path, _)| path)) {
            lines.extend_from_slice(path);
            lines.push(0);
        }
        git.run_with(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], lines)?;
        let printed = git.run(["ls-files", "-z", "-s", "-t", "-v"])?;
        let listing = Listing::parse(&printed).map_err(ReviewError::file(&index))?;
        for (path, mode) in converted {
            let found = listing.get(path).ok_or_else(|| lost_by_git(path))?;
            import.put(path, mode, &found.object);
        }
        Ok(())
    }
}

/// A copy that has no name, its length, and whether there is a carriage return in it; none where it is longer than `most`.
fn copy(file: &File, place: &Path, most: u64) -> io::Result<Option<(File, u64, bool)>> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut copy = File::options().read(true).write(true).create_new(true).mode(0o600).open(place)?;
    fs::remove_file(place)?;
    let length = staging::copy(file, &copy, most)?;
    if length > most {
        return Ok(None);
    }
    copy.rewind()?;
    let (mut has_return, mut piece) = (false, vec![0; PIECE]);
    while !has_return {
        match copy.read(&mut piece)? {
            0 => break,
            count => has_return = piece.get(..count).unwrap_or_default().contains(&b'\r'),
        }
    }
    copy.rewind()?;
    Ok(Some((copy, length, has_return)))
}

/// What cannot be read, or is something else by now, is none; anything else is a failure.
fn lost<T>(path: &[u8], errno: Errno) -> Result<Option<T>, ReviewError> {
    match errno {
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::AGAIN
        | Errno::NXIO
        | Errno::INVAL
        | Errno::ACCESS
        | Errno::PERM => Ok(None),
        errno => Err(ReviewError::File { path: inert_name(path).into(), source: errno.into() }),
    }
}

fn lost_by_git(path: &[u8]) -> ReviewError {
    ReviewError::File { path: inert_name(path).into(), source: io::ErrorKind::NotFound.into() }
}
