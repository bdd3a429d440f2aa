//! The workspace as it is now, as a tree: the base with what the layer changes, as far as git would take it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::SystemTime;

use crate::base::{Base, RULES, read_paths};
use crate::error::ReviewError;
use crate::layer::Directory;
use crate::making::{Made, Making};
use crate::record::Mode;
use crate::remark::Remark;
use crate::seen;
use crate::staging::Staging;
use crate::store::Store;
use crate::walk::{Ground, Walk, Walked};

/// The index by which a tree that was worked on directly is compared.
const INDEX: &str = "index-compared";
/// What the layer looked like when its tree was made.
const SEEN: &str = "seen";

/// What there is now.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) tree: String,
    /// How large each file is that was written inside.
    pub(crate) sizes: BTreeMap<Vec<u8>, u64>,
    /// Paths of the base that are gone.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) over_hidden: BTreeSet<Vec<u8>>,
    /// What of a tree that was worked on directly is in no tree of git's.
    pub(crate) unlooked: Vec<Vec<u8>>,
    _tidying: Tidying,
}

/// Removes what is not needed any more beside other work; dropping it waits.
#[derive(Debug)]
struct Tidying(Option<JoinHandle<()>>);

impl Drop for Tidying {
    fn drop(&mut self) {
        drop(self.0.take().map(JoinHandle::join));
    }
}

impl Snapshot {
    /// Takes one. `also_known` are paths that the agent has committed and git would else ignore.
    pub(crate) fn take(
        store: &Store,
        base: &Base,
        also_known: &BTreeSet<Vec<u8>>,
    ) -> Result<Self, ReviewError> {
        let hidden = read_paths(&store.files.hidden())?;
        let (top, ground) = ground(store, base)?;
        let is_layer = matches!(ground, Ground::Layer);
        let rules = store.own(RULES);
        let rules = File::open(&rules).map_err(ReviewError::file(&rules))?;
        let git = store.git()?;
        let staging = Staging::make(store.own("staging"))?;
        let began = SystemTime::now();
        let walk = Walk::new(base, [also_known, &hidden], &git, rules.into(), staging, (top, ground));
        let (mut walked, mut staging, top) = walk.run()?;
        let tree = tree(store, base, &mut walked, &mut staging, (&top, is_layer, began))?;
        let stale = staging.path().to_owned();
        let tidying = Tidying(Some(std::thread::spawn(move || drop(fs::remove_dir_all(stale)))));
        let Walked { written, removed, remarks, over_hidden, unlooked, .. } = walked;
        let sizes = written.into_iter().map(|(path, written)| (path, written.seen().size)).collect();
        Ok(Self { tree, sizes, removed, remarks, over_hidden, unlooked, _tidying: tidying })
    }

    /// Every path that may differ from the base.
    pub(crate) fn touched(&self) -> BTreeSet<Vec<u8>> {
        self.sizes.keys().chain(&self.removed).cloned().collect()
    }
}

/// What is read: the layer, or the owner's tree itself where that was worked on.
fn ground(store: &Store, base: &Base) -> Result<(Directory, Ground), ReviewError> {
    let open = |path: &Path| Directory::top(path).map_err(|errno| ReviewError::file(path)(errno.into()));
    let upper = open(&store.files.upper())?;
    if store.recorded.mode == Mode::Review {
        return Ok((upper, Ground::Layer));
    }
    let owner = &store.recorded.owner;
    if !owner.is_dir() {
        return Err(ReviewError::OwnerGone(owner.clone()));
    }
    // By the base's index in our own repository: size and times tell what to compare, and the time of the last change
    // cannot be set by anybody. Submodules are not asked for: that would run git in each.
    let index = store.copy_of_base(INDEX)?;
    let git = store.git()?.unsynced().on(owner).with_index(&index);
    let printed = git.run(["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"])?;
    let changed: BTreeSet<Vec<u8>> =
        printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    let top = open(owner)?;
    // What was left out of the checkout is absent, and was before.
    let is_left_out =
        |path: &Vec<u8>| base.listing.get(path).is_some_and(|entry| entry.is_flagged) && top.lacks(path);
    let changed = changed.into_iter().filter(|path| !is_left_out(path)).collect();
    Ok((top, Ground::Tree { changed, repositories: upper }))
}

/// The tree of a layer: the one that is known, or a new one.
fn tree(
    store: &Store,
    base: &Base,
    walked: &mut Walked,
    staging: &mut Staging,
    (top, is_layer, began): (&Directory, bool, SystemTime),
) -> Result<String, ReviewError> {
    if walked.written.is_empty() && walked.removed.is_empty() && walked.pointers.is_empty() {
        return Ok(base.tree.clone());
    }
    let path = store.own(SEEN);
    let digest = seen::digest(&base.tree, walked, began);
    if let Some(tree) = digest.as_ref().and_then(|digest| seen::known(&path, digest)) {
        return Ok(tree);
    }
    let Made { tree, is_whole } = Making { store, base, top, is_layer, staging }.run(walked)?;
    match digest.filter(|_| is_whole) {
        Some(digest) => seen::note(&path, &digest, &tree),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
    .map_err(ReviewError::file(&path))?;
    Ok(tree)
}
