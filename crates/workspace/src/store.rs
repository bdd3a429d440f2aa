//! Our own repository for one workspace: made file by file, with a configuration of ours. Nothing in it names a program,
//! so that git, which runs there on hostile content, has none to start.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::ReviewError;
use crate::git::{Git, GitError};
use crate::preferences::Preferences;
use crate::record::{Files, Recorded};

/// Said last, so that it holds whatever stands in a tree: nothing is converted but line ends, no program is asked how to
/// convert or to show, and no file is kept from being shown by saying that it is binary.
const ATTRIBUTES: &str = "* -filter -ident !working-tree-encoding !diff !merge !export-subst\n";

/// A workspace's files, held: nobody else records, shows or applies at the same time.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) files: Files,
    pub(crate) recorded: Recorded,
    _lock: File,
}

impl Store {
    /// Waits until nobody else is at it.
    pub(crate) fn open(files: &Files) -> Result<Self, ReviewError> {
        Self::locked(files, FlockOperation::LockExclusive)?.ok_or(ReviewError::NoWorkspace)
    }

    /// The same without waiting: none where somebody else is at it.
    pub(crate) fn try_open(files: &Files) -> Result<Option<Self>, ReviewError> {
        Self::locked(files, FlockOperation::NonBlockingLockExclusive)
    }

    fn locked(files: &Files, operation: FlockOperation) -> Result<Option<Self>, ReviewError> {
        let review = files.review();
        let failed = ReviewError::file(&review);
        let lock = match File::open(&review) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReviewError::NoWorkspace),
            opened => opened.map_err(failed)?,
        };
        while let Err(errno) = flock(&lock, operation) {
            match errno {
                Errno::INTR => {}
                Errno::WOULDBLOCK => return Ok(None),
                errno => return Err(failed(errno.into())),
            }
        }
        Ok(Some(Self { recorded: read_recorded(files)?, files: files.clone(), _lock: lock }))
    }

    /// git in our repository, with the owner's objects to read.
    pub(crate) fn git(&self) -> Result<Git, GitError> {
        let mut stores =
            self.recorded.repository.as_ref().map_or_else(Vec::new, |found| found.objects.clone());
        stores.extend(Some(self.quarantine()).filter(|directory| directory.is_dir()));
        Ok(Git::new(&self.files.git())?.with_objects(&stores))
    }

    /// Where objects lie that came from inside and were checked.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.files.review().join("quarantine")
    }

    /// The index of the base.
    pub(crate) fn base_index(&self) -> PathBuf {
        self.files.git().join("index")
    }

    /// A file of ours.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.files.review().join(name)
    }

    /// A new copy of the base's index under another name, without the lock that a killed one may have left.
    pub(crate) fn copy_of_base(&self, name: &str) -> Result<PathBuf, ReviewError> {
        let path = self.files.git().join(name);
        let _ = fs::remove_file(path.with_extension("lock"));
        copy_index(&self.base_index(), &path).map_err(ReviewError::file(&path))?;
        Ok(path)
    }

    /// Makes the repository anew.
    pub(crate) fn make(&self, preferences: &Preferences) -> Result<(), ReviewError> {
        let directory = self.files.git();
        let made = make(&directory, self.object_format(), preferences);
        made.map_err(ReviewError::file(&directory))?;
        // Where history was cut off is history's end, for git in ours, too.
        let cut = self.recorded.repository.as_ref().map(|found| found.common_dir.join("shallow"));
        if let Some(cut) = cut.filter(|cut| cut.exists()) {
            fs::copy(&cut, directory.join("shallow")).map_err(ReviewError::file(&cut))?;
        }
        Ok(())
    }

    /// What of a file's kind is believed, by the configuration of ours.
    pub(crate) fn trust(&self) -> Result<Trust, ReviewError> {
        let path = self.files.git().join("config");
        let text = fs::read_to_string(&path).map_err(ReviewError::file(&path))?;
        let is_off = |name: &str| {
            let mut values = text.lines().filter_map(|line| line.trim().split_once(" = "));
            values.any(|(key, value)| key == name && is_false(value))
        };
        Ok(Trust { executable: !is_off("filemode"), links: !is_off("symlinks") })
    }

    /// The commit that everything began with.
    pub(crate) fn base_commit(&self) -> Option<&str> {
        self.recorded.repository.as_ref()?.head.commit.as_deref()
    }

    pub(crate) fn object_format(&self) -> &str {
        self.recorded.repository.as_ref().map_or("sha1", |repository| repository.object_format.as_str())
    }
}

/// What of a file's kind is believed: some file systems keep neither.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    executable: bool,
    links: bool,
}

impl Trust {
    /// The mode of a file that was another one before, as git would have it.
    pub(crate) fn mode(self, before: Option<&str>, is_executable: bool) -> &'static str {
        match before {
            Some("120000") if !self.links => "120000",
            Some("100755") if !self.executable => "100755",
            _ if is_executable && self.executable => "100755",
            _ => "100644",
        }
    }
}

/// What a workspace was at the start.
pub(crate) fn read_recorded(files: &Files) -> Result<Recorded, ReviewError> {
    let path = files.recorded();
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReviewError::NoWorkspace),
        read => read.map_err(ReviewError::file(&path))?,
    };
    serde_json::from_slice(&text).map_err(|error| ReviewError::file(&path)(error.into()))
}

/// Makes a repository of ours anew, with nothing in it.
pub(crate) fn make(directory: &Path, object_format: &str, preferences: &Preferences) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut builder = DirBuilder::new();
    // The first one alone: of a sandbox that was removed meanwhile nothing is made again.
    builder.mode(0o700).create(directory)?;
    builder.recursive(true);
    for name in ["objects/info", "objects/pack", "refs/heads", "info"] {
        builder.create(directory.join(name))?;
    }
    let (version, extension) = match object_format {
        "sha256" => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => (0, ""),
    };
    let mut config = format!("[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n");
    for (name, value) in &preferences.core {
        config.push_str(&format!("\t{name} = {value}\n"));
    }
    config.push_str(extension);
    fs::write(directory.join("config"), config)?;
    fs::write(directory.join("info/exclude"), &preferences.excludes)?;
    let mut attributes = preferences.attributes.clone();
    attributes.push(b'\n');
    attributes.extend_from_slice(ATTRIBUTES.as_bytes());
    fs::write(directory.join("info/attributes"), attributes)?;
    fs::write(directory.join("HEAD"), "ref: refs/heads/none\n")
}

/// Whether a value is a no, for git.
fn is_false(value: &str) -> bool {
    value.is_empty() || matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0")
}

/// Copies an index with its time: git compares that with the times of files to know which may have changed unseen.
pub(crate) fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let unnamed = path.with_extension("new");
    let mut file = File::create(&unnamed)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&unnamed, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
