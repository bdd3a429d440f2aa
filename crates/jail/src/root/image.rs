//! The root file system from an image: an overlay of its layers, read-only, under a directory of the root's own tmpfs
//! that takes what is written, so that one number limits it and it ends with the sandbox.
//!
//! The image is a stranger's, and no path of ours may lead through a link of its. So what we put there (mount points,
//! /etc/passwd and its like) is made in the upper directory before the overlay stands: there it is a plain directory
//! or file, and an overlay shows what is upper, whatever the image has in that place. /dev, /proc, /sys, /tmp and what
//! is ours are not the image's at all: the root is the same sealed tmpfs as ever, and only what the image has beside
//! them is bound into it, name by name.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use policy::{AGENT_GID, AGENT_UID, ImageRoot, SandboxSpec};

use super::layers::{Layers, Seen};
use super::{etc, layered};
use crate::error::JailError;
use crate::idmap;
use crate::ids::IdMap;
use crate::step::{Bound, Owner, Place, Step, host_path, inside};

/// Where the overlay is while it is taken apart, and what it is put together from. Short, as all layers have to be
/// named in one page.
const WHOLE: &str = "/.agentbox/image";
const LAYERS: &str = "/.agentbox/l";
pub(crate) const UPPER: &str = "/.agentbox/upper";
const WORK: &str = "/.agentbox/work";
/// In the place of layers where an image has none: an overlay needs one.
const NONE: &str = "/.agentbox/empty";

/// What is ours at the top of the root, whatever the image has there.
const OURS: [&str; 7] = [".agentbox", "dev", "mnt", "proc", "sys", "tmp", "workspace"];
/// What is there whether the image has it or not.
const ALWAYS: [&str; 2] = ["etc", "home"];

/// The root of an image, as far as it does not depend on what is mounted into it.
pub(super) struct Imaged<'a> {
    layers: Layers<'a>,
    ids: &'a IdMap,
    owner: Owner,
    /// What is made in the upper directory.
    upper: Vec<Step>,
    /// Directories that are.
    made: BTreeSet<PathBuf>,
    top: Vec<(OsString, Seen)>,
}

impl<'a> Imaged<'a> {
    pub(super) fn new(image: &'a ImageRoot, spec: &SandboxSpec, ids: &'a IdMap) -> Result<Self, JailError> {
        let layers = Layers::new(&image.layers);
        let mut top = layers.top()?;
        top.retain(|(name, seen)| {
            let is_ours = OURS.iter().chain(&ALWAYS).any(|ours| name == ours);
            !is_ours && (!name.as_bytes().starts_with(b".wh.")) && *seen != Seen::Absent
        });
        let agent = Owner::Agent { uid: AGENT_UID, gid: AGENT_GID };
        let owner = if ids.has_root() { agent } else { Owner::Builder };
        let mut imaged = Self { layers, ids, owner, upper: Vec::new(), made: BTreeSet::new(), top };
        imaged.directory(Path::new("/etc"))?;
        for (name, contents) in etc::of_image(spec, &layers) {
            let path = upper(&Path::new("/etc").join(name))?;
            imaged.upper.push(Step::File { path, contents });
        }
        imaged.directory(Path::new("/home"))?;
        let (path, mode) = (upper(Path::new("/home/agent"))?, 0o700);
        imaged.upper.push(Step::Directory { path, mode, owner: imaged.owner });
        imaged.made.insert(PathBuf::from("/home/agent"));
        imaged.workdir(spec.workdir.as_path())?;
        Ok(imaged)
    }

    /// Where processes start is there, as images name directories that nobody has made.
    fn workdir(&mut self, workdir: &Path) -> Result<(), JailError> {
        let Some(first) = workdir.strip_prefix("/").unwrap_or(workdir).iter().next() else { return Ok(()) };
        if OURS.iter().any(|ours| first == *ours) || self.layers.look(workdir) != Seen::Absent {
            return Ok(());
        }
        if !self.is_of_image(workdir) {
            self.top.push((first.to_owned(), Seen::Directory { mode: 0o755, uid: 0, gid: 0 }));
        }
        for path in above(workdir) {
            if self.made.contains(&path) || self.layers.look(&path) != Seen::Absent {
                self.directory(&path)?;
                continue;
            }
            let owner = self.owner;
            self.upper.push(Step::Directory { path: upper(&path)?, mode: 0o755, owner });
            self.made.insert(path);
        }
        Ok(())
    }

    /// Whether a path is in what the image brings.
    fn is_of_image(&self, path: &Path) -> bool {
        let first = path.strip_prefix("/").unwrap_or(path).iter().next();
        first.is_some_and(|first| {
            ALWAYS.iter().any(|name| first == *name) || self.top.iter().any(|(name, _)| name == first)
        })
    }

    /// Makes sure that something of ours can be mounted at places in the image, which are made before the overlay is.
    pub(super) fn make_places(&mut self, steps: &[Step]) -> Result<(), JailError> {
        for step in steps {
            let Step::Place { path, kind, .. } = step else { continue };
            let path = Path::new("/").join(OsStr::from_bytes(path.as_bytes()));
            if !self.is_of_image(&path) || self.made.contains(&path) {
                continue;
            }
            match kind {
                Place::Directory => self.directory(&path)?,
                Place::File => {
                    self.refuse_link(&path)?;
                    self.upper.push(Step::File { path: upper(&path)?, contents: Vec::new() });
                    self.made.insert(path);
                }
            }
        }
        Ok(())
    }

    /// A directory over that of the image, with its rights and owner; a link of the image's there is refused, unless it
    /// is one of the two that are always ours.
    fn directory(&mut self, path: &Path) -> Result<(), JailError> {
        if self.made.contains(path) {
            return Ok(());
        }
        let is_always = ALWAYS.iter().any(|name| path == Path::new("/").join(name));
        if !is_always {
            self.refuse_link(path)?;
        }
        let (mode, owner) = match self.layers.look(path) {
            Seen::Directory { mode, uid, gid } => (mode & 0o1777, self.owner_inside(uid, gid)),
            _ => (0o755, Owner::Builder),
        };
        self.upper.push(Step::Directory { path: upper(path)?, mode, owner });
        self.made.insert(path.to_owned());
        Ok(())
    }

    fn refuse_link(&self, path: &Path) -> Result<(), JailError> {
        match self.layers.look(path) {
            Seen::Link(_) => Err(JailError::LinkInImage(path.to_owned())),
            _ => Ok(()),
        }
    }

    /// Whom a directory on the disk belongs to inside.
    fn owner_inside(&self, uid: u32, gid: u32) -> Owner {
        let inside = |id: u32, is_user: bool| match self.ids {
            IdMap::Range { .. } => Some(id),
            IdMap::Subordinate { uids, gids } => {
                let (range, caller) =
                    if is_user { (uids, self.ids.host_agent().0) } else { (gids, self.ids.host_agent().1) };
                let agent = if is_user { AGENT_UID } else { AGENT_GID };
                let offset = id.checked_sub(range.first).filter(|offset| *offset < range.count);
                let below = offset.map(|offset| if offset < agent { offset } else { offset + 1 });
                if id == caller { Some(agent) } else { below }
            }
            IdMap::Single => None,
        };
        match (inside(uid, true), inside(gid, false)) {
            (Some(uid), Some(gid)) => Owner::Agent { uid, gid },
            _ => Owner::Builder,
        }
    }

    /// All of it: the overlay, and what it shows bound into the root.
    pub(super) fn steps(self) -> Result<Vec<Step>, JailError> {
        let mut steps = Vec::new();
        for path in [WHOLE, LAYERS, UPPER, WORK] {
            steps.push(layered::directory(Path::new(path))?);
        }
        let shown = self.layers.shown();
        let places: Vec<PathBuf> =
            (0..shown.len()).map(|number| Path::new(LAYERS).join(number.to_string())).collect();
        let mapped = match self.ids {
            IdMap::Range { first, .. } => Some(idmap::ImageIds::new(*first)?),
            IdMap::Subordinate { .. } | IdMap::Single => None,
        };
        for (layer, place) in shown.iter().zip(&places) {
            steps.push(layered::directory(place)?);
            let path = inside(place)?;
            steps.push(match &mapped {
                Some(ids) => Step::Attach { tree: ids.tree(layer)?, path },
                None => Step::Bind { source: host_path(layer)?, path, bound: Bound::ReadOnly },
            });
        }
        steps.extend(self.upper);
        steps.push(overlay(&places, self.ids)?);
        // The overlay has taken hold of them by itself.
        for place in &places {
            steps.push(Step::Unmount { path: inside(place)? });
        }
        let always =
            ALWAYS.iter().map(|name| (OsString::from(name), Seen::Directory { mode: 0o755, uid: 0, gid: 0 }));
        for (name, seen) in always.chain(self.top) {
            let path = inside(Path::new(&name))?;
            let source = inside(&Path::new(WHOLE).join(&name))?;
            match seen {
                Seen::Absent => continue,
                Seen::Link(target) => {
                    steps.push(Step::Symlink { target: host_path(&target)?, path });
                    continue;
                }
                Seen::File => steps.push(Step::File { path: path.clone(), contents: Vec::new() }),
                Seen::Directory { .. } => steps.push(layered::directory(Path::new(&name))?),
            }
            steps.push(Step::Again { source, path, flags: 0 });
        }
        steps.push(Step::Unmount { path: inside(Path::new(WHOLE))? });
        Ok(steps)
    }

    /// What of the image processes may write to, as far as its own access rights let them.
    pub(super) fn writable(&self) -> Vec<PathBuf> {
        let directories =
            self.top.iter().filter(|(_, seen)| matches!(seen, Seen::Directory { .. } | Seen::File));
        let names = directories.map(|(name, _)| name.as_os_str()).chain(ALWAYS.iter().map(OsStr::new));
        names.map(|name| Path::new("/").join(name)).collect()
    }
}

fn overlay(places: &[PathBuf], ids: &IdMap) -> Result<Step, JailError> {
    let none = [PathBuf::from(NONE)];
    let places = if places.is_empty() { &none } else { places };
    let relative = |path: &Path| path.strip_prefix("/").unwrap_or(path).display().to_string();
    let lower: Vec<String> = places.iter().rev().map(|place| relative(place)).collect();
    let (upper, work) = (relative(Path::new(UPPER)), relative(Path::new(WORK)));
    let options = format!("lowerdir={},upperdir={upper},workdir={work},userxattr", lower.join(":"));
    // What the kernel makes for itself belongs to whoever builds: root inside, or the agent where nobody else is.
    let (uid, gid) = if ids.has_root() { (0, 0) } else { (AGENT_UID, AGENT_GID) };
    let (path, options) = (inside(Path::new(WHOLE))?, host_path(Path::new(&options))?);
    Ok(Step::Overlay { path, options, uid, gid })
}

/// A path of the image's in the upper directory.
fn upper(path: &Path) -> Result<std::ffi::CString, JailError> {
    inside(&Path::new(UPPER).join(path.strip_prefix("/").unwrap_or(path)))
}

/// A path and what is above it, from the top on.
fn above(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        path.ancestors().filter(|path| *path != Path::new("/")).map(Path::to_owned).collect();
    all.reverse();
    all
}
