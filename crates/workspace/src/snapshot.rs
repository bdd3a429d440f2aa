//! The workspace as it is now, as a tree: the base with what the layer changes, as far as git would take it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::SystemTime;

use rustix::io::Errno;

use crate::base::{Base, RULES, read_paths};
use crate::error::ReviewError;
use crate::inert::inert_name;
use crate::layer::{Directory, notes};
use crate::record::Mode;
use crate::remark::{Remark, Why};
use crate::seen;
use crate::staging::Staging;
use crate::store::Store;
use crate::walk::{Ground, Walk, Walked, Written};

/// The index of what there is now.
const INDEX: &str = "index-now";
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
    let is_whole = copy(walked, staging, (top, is_layer))?;
    let tree = write(store, walked, staging)?;
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

/// Copies everything that was written; whether each was as it had been seen.
fn copy(
    walked: &mut Walked,
    staging: &mut Staging,
    (top, is_layer): (&Directory, bool),
) -> Result<bool, ReviewError> {
    let mut is_whole = true;
    let mut lost = Vec::new();
    let mut most = crate::limits::Limits::default().bytes;
    for (path, written) in &mut walked.written {
        let seen = match copy_one(path, written, staging, (top, is_layer, most)) {
            Ok(Some(seen)) => seen,
            Ok(None) => {
                lost.push(path.clone());
                continue;
            }
            Err(error) => return Err(error),
        };
        most = most.saturating_sub(seen.size);
        is_whole &= seen == *written.seen();
        *written = match written {
            Written::File(_) => Written::File(seen),
            Written::Link(_) => Written::Link(seen),
        };
    }
    for path in &lost {
        walked.written.remove(path);
        walked.remarks.push(Remark { path: path.clone(), why: Why::Closed });
    }
    Ok(is_whole && lost.is_empty())
}

/// Copies one; none where it cannot be read, or is something else by now.
fn copy_one(
    path: &[u8],
    written: &Written,
    staging: &mut Staging,
    (top, is_layer, most): (&Directory, bool, u64),
) -> Result<Option<seen::Seen>, ReviewError> {
    let failed = |errno: Errno| ReviewError::File { path: inert_name(path).into(), source: errno.into() };
    let is_lost = |errno: &Errno| {
        matches!(
            *errno,
            Errno::NOENT
                | Errno::NOTDIR
                | Errno::LOOP
                | Errno::AGAIN
                | Errno::NXIO
                | Errno::INVAL
                | Errno::ACCESS
                | Errno::PERM
        )
    };
    match written {
        Written::Link(_) => match top.link(path) {
            Ok((target, stat)) => {
                staging.link(path, &target)?;
                Ok(Some(seen::Seen::of(&stat)))
            }
            Err(errno) if is_lost(&errno) => Ok(None),
            Err(errno) => Err(failed(errno)),
        },
        Written::File(_) => match top.file(path) {
            Ok((file, stat)) => {
                if is_layer && notes(&file).is_elsewhere {
                    return Err(ReviewError::Layer(inert_name(path)));
                }
                let mut seen = seen::Seen::of(&stat);
                seen.size = staging.file(path, &file, seen.is_executable(), most)?;
                if seen.size > most {
                    let most = crate::limits::Limits::default().bytes;
                    return Err(ReviewError::TooMuch { what: "bytes", most });
                }
                Ok(Some(seen))
            }
            Err(errno) if is_lost(&errno) => Ok(None),
            Err(errno) => Err(failed(errno)),
        },
    }
}

fn write(store: &Store, walked: &Walked, staging: &Staging) -> Result<String, ReviewError> {
    let index = store.copy_of_base(INDEX)?;
    let git = store.git()?.unsynced().on(staging.path()).with_index(&index);
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
