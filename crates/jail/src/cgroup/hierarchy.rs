//! Which cgroup hierarchies this machine has, and where in them the caller is.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::read;

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
    /// Reads them from /proc.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(
            &read::text(Path::new("/proc/self/mountinfo"))?,
            &read::text(Path::new("/proc/self/cgroup"))?,
        ))
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

/// The caller's path in the hierarchy that has these controllers.
fn place_in<'text>(places: &'text str, kind: &str, controllers: &[String]) -> Option<&'text str> {
    places.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, names, path) = (fields.next()?, fields.next()?, fields.next()?);
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
