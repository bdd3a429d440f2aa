//! Which cgroup hierarchies this machine has, and where in them the caller is.

use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{stat, statfs};

use super::{UNIFIED_MAGIC, freezer};
use crate::read;

/// Where hierarchies usually are.
const USUAL: &str = "/sys/fs/cgroup";
/// What a v1 hierarchy is to the kernel.
const LEGACY_MAGIC: i64 = 0x0027_e0eb;
/// The number of a hierarchy's root.
const ROOT: u64 = 1;
/// The number of the machine's own cgroup namespace, on every kernel.
const MACHINES_OWN: u64 = 0xEFFF_FFFB;

/// A controller that limits something of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Processes and threads.
    Pids,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }
}

/// A mounted hierarchy and the caller's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The caller's cgroup, as a directory below the mount.
    pub own: PathBuf,
    /// v1: the controllers that are bound to it, as mount options.
    pub controllers: Vec<String>,
}

impl Hierarchy {
    /// v2: whether it has every controller that limits something of ours.
    #[must_use]
    pub fn has_all_controllers(&self) -> bool {
        lists_all_controllers(&self.mount.join("cgroup.controllers"))
    }
}

/// v2: whether this file of a cgroup's names every controller that limits something of ours.
pub(super) fn lists_all_controllers(file: &Path) -> bool {
    let listed = read::text(file).unwrap_or_default();
    Controller::ALL.iter().all(|controller| listed.split_whitespace().any(|name| name == controller.name()))
}

/// All hierarchies that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    /// v2.
    pub unified: Option<Hierarchy>,
    /// v1.
    pub legacy: Vec<Hierarchy>,
}

impl Hierarchies {
    /// Finds them where they are on nearly every machine, else reads the list of mounts: to write that down takes the kernel
    /// longer than all else that is looked at before a start.
    pub fn read() -> io::Result<Self> {
        let places = read::text(Path::new("/proc/self/cgroup"))?;
        let usual = || Self::at_usual_places(Path::new(USUAL), &places, shows_all);
        match count_from_root().then(usual).flatten() {
            Some(found) => Ok(found),
            None => Ok(Self::parse(&read::text(Path::new("/proc/self/mountinfo"))?, &places)),
        }
    }

    /// Those of ours, where each is at its usual place; `shows_all` says whether a directory is all of a hierarchy of this
    /// kind.
    fn at_usual_places(usual: &Path, places: &str, shows_all: impl Fn(&Path, i64) -> bool) -> Option<Self> {
        let mut found = Self::default();
        for line in places.lines() {
            let (_, names, place) = parse_place(line)?;
            let controllers: Vec<String> = names.split(',').map(str::to_owned).collect();
            if names.is_empty() {
                let mounts = [usual.to_owned(), usual.join("unified")];
                let mount = mounts.into_iter().find(|mount| shows_all(mount, UNIFIED_MAGIC))?;
                found.unified =
                    Some(Hierarchy { own: mount.join(below("/", place)), mount, controllers: Vec::new() });
            } else if controllers.iter().any(|name| is_of_use(name)) {
                let mount = usual.join(names);
                if !shows_all(&mount, LEGACY_MAGIC) {
                    return None;
                }
                found.legacy.push(Hierarchy { own: mount.join(below("/", place)), mount, controllers });
            }
        }
        Some(found)
    }

    fn parse(mounts: &str, places: &str) -> Self {
        let mut found = Self::default();
        for (mount, root, kind, options) in mounts.lines().filter_map(parse_mount) {
            let controllers: Vec<String> = match kind {
                "cgroup" => options.split(',').map(str::to_owned).collect(),
                _ => Vec::new(),
            };
            let Some(place) = place_in(places, kind, &controllers) else { continue };
            let hierarchy = Hierarchy { own: mount.join(below(root, place)), mount, controllers };
            match kind {
                "cgroup2" => found.unified = Some(hierarchy),
                _ => found.legacy.push(hierarchy),
            }
        }
        found
    }
}

/// Mount point, root, type and super-block options of a cgroup line of mountinfo.
fn parse_mount(line: &str) -> Option<(PathBuf, &str, &str, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let kind = right.next().filter(|kind| kind.starts_with("cgroup"))?;
    let options = right.nth(1)?;
    let mut left = left.split(' ').skip(3);
    let root = left.next()?;
    Some((PathBuf::from(left.next()?), root, kind, options))
}

/// Whether a v1 controller is of use: it limits something, or stops it.
fn is_of_use(name: &str) -> bool {
    name == freezer::NAME || Controller::ALL.iter().any(|controller| controller.name() == name)
}

/// Whether a directory is a whole hierarchy: a mount of this kind that shows its root, which has the first number. What is
/// mounted in a container is often a part.
fn shows_all(mount: &Path, magic: i64) -> bool {
    statfs(mount).is_ok_and(|found| found.f_type == magic)
        && stat(mount).is_ok_and(|found| found.st_ino == ROOT)
}

/// Whether the places of what a process is in count from the root of each hierarchy, as in the machine's own cgroup
/// namespace. In another one they count from where it began, which may be mounted nowhere.
fn count_from_root() -> bool {
    stat("/proc/self/ns/cgroup").is_ok_and(|namespace| namespace.st_ino == MACHINES_OWN)
}

/// Number, controllers and path of a line of what a process is in.
fn parse_place(line: &str) -> Option<(&str, &str, &str)> {
    let mut fields = line.splitn(3, ':');
    Some((fields.next()?, fields.next()?, fields.next()?))
}

/// The caller's path in the hierarchy that has these controllers.
fn place_in<'text>(places: &'text str, kind: &str, controllers: &[String]) -> Option<&'text str> {
    places.lines().find_map(|line| {
        let (_, names, path) = parse_place(line)?;
        let matches = match kind {
            "cgroup2" => names.is_empty(),
            _ => names.split(',').any(|name| controllers.iter().any(|controller| controller == name)),
        };
        matches.then_some(path)
    })
}

/// Where `place` is below the mount. Inside a container the mount shows only a part of the hierarchy, which
/// the caller may even stand outside of; then the mount itself is as near as one gets.
fn below<'text>(root: &str, place: &'text str) -> &'text Path {
    let below = Path::new(place).strip_prefix(root).unwrap_or(Path::new(""));
    if below.components().any(|part| part == Component::ParentDir) { Path::new("") } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_MOUNTS: &str = "\
30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn hybrid() {
        let found = Hierarchies::parse(HYBRID_MOUNTS, "3:memory:/jobs/7\n2:cpu,cpuacct:/\n0::/x\n");
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup/unified/x"));
        assert_eq!(found.legacy[0].own, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(found.legacy[1].own, Path::new("/sys/fs/cgroup/memory/jobs/7"));
        assert!(found.legacy[1].controllers.iter().any(|name| name == "memory"));
    }

    #[test]
    fn the_usual_places_say_the_same_as_the_list_of_mounts() {
        let usual = Path::new(USUAL);
        let names = |hierarchy: &Hierarchy| (hierarchy.mount.clone(), hierarchy.own.clone());
        let places = "4:freezer:/\n3:memory:/jobs/7\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/x\n";
        let mounted = |path: &Path, magic| {
            magic == if path.ends_with("unified") { UNIFIED_MAGIC } else { LEGACY_MAGIC } && path != usual
        };
        let found = Hierarchies::at_usual_places(usual, places, mounted).unwrap();
        let mounts =
            format!("{HYBRID_MOUNTS}\n34 30 0:30 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer");
        let listed = Hierarchies::parse(&mounts, places);
        assert_eq!(found.unified.as_ref().map(names), listed.unified.as_ref().map(names));
        let sorted = |found: &Hierarchies| {
            let mut all: Vec<_> = found.legacy.iter().map(names).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&found), sorted(&listed));
        // One that is elsewhere, or shows a part, sends us to the list.
        let without = |path: &Path, magic| mounted(path, magic) && !path.ends_with("memory");
        assert_eq!(Hierarchies::at_usual_places(usual, places, without), None);
        let not_unified = |path: &Path, magic| mounted(path, magic) && !path.ends_with("unified");
        assert_eq!(Hierarchies::at_usual_places(usual, places, not_unified), None);
        let one = |path: &Path, magic| path == usual && magic == UNIFIED_MAGIC;
        let found = Hierarchies::at_usual_places(usual, "0::/user.slice/a.scope\n", one).unwrap();
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup/user.slice/a.scope"));
    }

    #[test]
    fn what_is_found_here_is_what_is_listed_here() {
        let own = |found: &Hierarchies| {
            let legacy = found.legacy.iter().filter(|it| it.controllers.iter().any(|name| is_of_use(name)));
            let mut all: Vec<_> = legacy.chain(&found.unified).map(|it| it.own.clone()).collect();
            all.sort();
            all
        };
        let text = |name: &str| std::fs::read_to_string(Path::new("/proc/self").join(name)).unwrap();
        let mounts = text("mountinfo");
        // What is mounted a second time elsewhere, as in some clusters, is the same.
        let usual: Vec<&str> =
            mounts.lines().filter(|line| !count_from_root() || line.contains(&format!(" {USUAL}"))).collect();
        let listed = Hierarchies::parse(&usual.join("\n"), &text("cgroup"));
        assert_eq!(own(&Hierarchies::read().unwrap()), own(&listed));
    }

    #[test]
    fn unified() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        let found = Hierarchies::parse(mounts, "0::/user.slice/a.scope\n");
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup/user.slice/a.scope"));
        assert!(found.legacy.is_empty());
    }

    #[test]
    fn a_part_of_the_hierarchy_in_a_container() {
        let mounts = "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let found = Hierarchies::parse(mounts, "0::/docker/abc/run\n");
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup/run"));
    }

    #[test]
    fn outside_of_what_the_mount_shows() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let found = Hierarchies::parse(mounts, "0::/../elsewhere\n");
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup"));
    }
}
