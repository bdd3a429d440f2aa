//! Somewhere to ask what a repository of the owner's tracks: one of ours, with a copy of the index and nothing else. The
//! one inside has such a copy, too, but whoever is inside may have written there.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::Known;
use crate::git::Git;
use crate::preferences::Preferences;
use crate::record::Files;
use crate::refusal::Refusal;
use crate::store;
use crate::upper::{path_of, unusable};

pub(super) struct Asked {
    pub(super) git: Git,
}

impl Asked {
    /// Makes it anew; they are told apart by a number.
    pub(super) fn make(files: &Files, number: usize, known: &Known<'_>) -> Result<Self, Refusal> {
        let all = files.asked();
        if number == 0 {
            let _ = fs::remove_dir_all(&all);
        }
        fs::create_dir_all(&all).map_err(unusable(&all))?;
        let directory = all.join(number.to_string());
        store::make(&directory, &known.settings.object_format(), &Preferences::default())
            .map_err(unusable(&directory))?;
        let git_dir = known.layout.git_dir.path();
        let entries = fs::read_dir(git_dir).map_err(unusable(git_dir))?.flatten();
        // One that is split refers to another file beside it.
        let is_index = |name: &[u8]| name == b"index" || name.starts_with(b"sharedindex.");
        for name in entries.map(|entry| entry.file_name()).filter(|name| is_index(name.as_bytes())) {
            let from = git_dir.join(&name);
            store::copy_index(&from, &directory.join(&name)).map_err(unusable(&from))?;
        }
        let git = Git::new(&directory)?.on(&directory).with_objects(&known.layout.objects);
        Ok(Self { git })
    }

    /// Where it has submodules, checked out or not.
    pub(super) fn submodules(&self) -> Result<Vec<PathBuf>, Refusal> {
        let printed = self.git.run(["ls-files", "-z", "--stage"])?;
        let lines = printed.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let paths = lines.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let mut paths: Vec<PathBuf> = paths.map(|path| path_of(path).to_owned()).collect();
        paths.dedup();
        Ok(paths)
    }
}
