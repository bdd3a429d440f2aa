//! The workspace as it is now, as a tree: the base with what the layer changes, as far as git would take it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use crate::base::{Base, RULES, read_paths};
use crate::error::ReviewError;
use crate::layer::Directory;
use crate::remark::Remark;
use crate::staging::Staging;
use crate::store::Store;
use crate::walk::{Walk, Walked};

/// The index of what there is now.
const INDEX: &str = "index-now";

/// What there is now.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) tree: String,
    /// How large each file is that was written inside.
    pub(crate) sizes: BTreeMap<Vec<u8>, u64>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) over_hidden: BTreeSet<Vec<u8>>,
}

impl Snapshot {
    /// Takes one. `also_known` are paths that the agent has committed and git would else ignore.
    pub(crate) fn take(
        store: &Store,
        base: &Base,
        also_known: &BTreeSet<Vec<u8>>,
    ) -> Result<Self, ReviewError> {
        let hidden = read_paths(&store.files.hidden())?;
        let upper = store.files.upper();
        let top = Directory::top(&upper).map_err(|errno| ReviewError::file(&upper)(errno.into()))?;
        let rules = store.own(RULES);
        let rules = File::open(&rules).map_err(ReviewError::file(&rules))?;
        let git = store.git()?;
        let staging = Staging::make(store.own("staging"))?;
        let walk = Walk::new(base, [also_known, &hidden], &git, rules.into(), staging, top);
        let (walked, staging) = walk.run()?;
        let tree = write(store, base, &walked, &staging)?;
        let _ = std::fs::remove_dir_all(staging.path());
        let Walked { written, remarks, over_hidden, .. } = walked;
        Ok(Self { tree, sizes: written, remarks, over_hidden })
    }
}

fn write(store: &Store, base: &Base, walked: &Walked, staging: &Staging) -> Result<String, ReviewError> {
    if walked.written.is_empty() && walked.removed.is_empty() && walked.pointers.is_empty() {
        return Ok(base.tree.clone());
    }
    let index = store.copy_of_base(INDEX)?;
    let git = store.git()?.on(staging.path()).with_index(&index);
    // What is gone goes first: attributes that are gone count no more for what is written.
    let mut lines = Vec::new();
    for path in walked.removed.iter().chain(walked.written.keys()) {
        lines.extend_from_slice(path);
        lines.push(0);
    }
    if !lines.is_empty() {
        git.run_with(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], lines)?;
    }
    let mut lines = Vec::new();
    for (path, commit) in &walked.pointers {
        lines.extend_from_slice(format!("160000 {commit}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }
    if !lines.is_empty() {
        git.run_with(["update-index", "-z", "--index-info"], lines)?;
    }
    Ok(git.line(["write-tree", "--missing-ok"])?)
}
