//! The root file system of a sandbox as a list of steps: a small tmpfs, read-only in the end, into which a
//! listed part of the host is bound. What is not listed here is absent inside, not masked.

mod devices;
mod direct;
mod etc;
mod image;
mod kernel;
mod layered;
mod layers;
mod listening;
mod owned;
mod search;
mod system;
mod tools;

use std::ffi::CStr;
use std::path::Path;

use policy::{Root, SandboxSpec, Tools};

use crate::error::JailError;
use crate::idmap;
use crate::ids::IdMap;
use crate::step::{Bound, Owner, Step, host_path, inside};

pub use direct::Direct;
pub(crate) use etc::host_name;
pub(crate) use image::UPPER;
pub(crate) use kernel::{HIDDEN_DIRECTORIES, HIDDEN_FILES};
pub use layered::{Layered, OBJECTS, shows_at_its_own_path};
pub use layers::{Layers, Seen};
pub use tools::{OwnerTools, tool_environment, tool_path};

/// The directories inside that can be written, beside what the owner mounts. All of them lie in the one root
/// tmpfs, so that one number limits them together.
pub const WRITABLE: [&str; 5] = ["/workspace", "/mnt/user-data/outputs", "/home/agent", "/tmp", "/dev/shm"];
/// Where the file that becomes PID 1 stands inside.
pub const INIT_PATH: &str = "/.agentbox/init";
/// The same for the kernel.
pub(crate) const INIT: &CStr = c"/.agentbox/init";

/// What of the host the plan of a root is made from.
pub(crate) struct Sources<'host> {
    /// The static file that becomes PID 1.
    pub(crate) init: &'host Path,
    /// The caller's home directory, where `--tools` finds tool chains.
    pub(crate) home: Option<&'host Path>,
    /// Our own directories, which no mount may bring in.
    pub(crate) own: &'host [&'host Path],
    /// The directory of what outlives the sandbox's processes, if anything does.
    pub(crate) kept: Option<&'host Path>,
    /// A tree of the owner's, in the place of a workspace of its own.
    pub(crate) tree: Option<Tree<'host>>,
}

/// A tree of the owner's that is the workspace.
#[derive(Clone, Copy, Debug)]
pub enum Tree<'host> {
    /// Under a layer of the sandbox's own.
    Layered(Layered<'host>),
    /// Itself.
    Direct(Direct<'host>),
}

/// What outlives the sandbox's processes: the name beside its specification, and where it shows inside.
pub const KEPT: [(&str, &str); 2] = [(WORKSPACE_NAME, "/workspace"), ("outputs", "/mnt/user-data/outputs")];
const WORKSPACE_NAME: &str = "workspace";

/// A planned root.
pub(crate) struct PlannedRoot {
    pub(crate) steps: Vec<Step>,
    /// Sockets that a mount would have brought in, now covered.
    pub(crate) covered_sockets: Vec<std::path::PathBuf>,
    /// Directories that the owner gave for writing.
    pub(crate) writable_mounts: Vec<std::path::PathBuf>,
}

/// What of the host is in every root that is no image's: its programs, and what may be known of /etc. To read it takes
/// most of a plan's time, and does not depend on what a sandbox is to be.
pub(crate) struct HostTrees(Result<Vec<Step>, JailError>);

impl HostTrees {
    pub(crate) fn look() -> Self {
        let host = Path::new("/");
        let steps = system::steps(host).and_then(|mut steps| {
            steps.extend(etc::steps(host)?);
            Ok(steps)
        });
        Self(steps)
    }
}

/// Plans the whole root, the kernel's file systems included.
pub(crate) fn plan(
    spec: &SandboxSpec,
    ids: &IdMap,
    sources: &Sources<'_>,
    host: HostTrees,
) -> Result<PlannedRoot, JailError> {
    let mut planned = mounts(spec, ids, sources)?;
    let mut steps = skeleton(spec, ids)?;
    let covers = match &spec.root {
        Root::Host(_) => {
            steps.extend(etc::synthetic(spec)?);
            let host = host.0?;
            // Asked for now, whenever the rest was looked at: who listens may have begun since.
            let covers = listening::cover(&host)?;
            steps.extend(host);
            covers
        }
        Root::Image(image) => {
            let mut imaged = image::Imaged::new(image, spec, ids)?;
            imaged.make_places(&planned.steps)?;
            planned.writable.extend(imaged.writable());
            steps.extend(imaged.steps()?);
            Vec::new()
        }
    };
    steps.extend(devices::steps()?);
    steps.extend(covers);
    steps.extend(kernel::steps(spec.nesting)?);
    steps.push(Step::File { path: inside(Path::new(INIT_PATH))?, contents: Vec::new() });
    steps.push(bring(sources.init, Path::new(INIT_PATH), Bound::ReadOnly, ids)?);
    for path in WRITABLE {
        let path = inside(Path::new(path))?;
        steps.push(Step::Again { source: path.clone(), path, flags: 0 });
    }
    steps.extend(planned.steps);
    Ok(PlannedRoot { steps, covered_sockets: planned.covered_sockets, writable_mounts: planned.writable })
}

/// What of the owner's is inside besides.
fn mounts(spec: &SandboxSpec, ids: &IdMap, sources: &Sources<'_>) -> Result<owned::PlannedMounts, JailError> {
    let mut mounts = owned::Mounts::new(ids, sources);
    for (name, target) in KEPT {
        match (name, &sources.tree, sources.kept) {
            (WORKSPACE_NAME, Some(Tree::Layered(layered)), _) => mounts.add_layered(layered)?,
            (WORKSPACE_NAME, Some(Tree::Direct(direct)), _) => mounts.add_direct(direct)?,
            (_, _, Some(kept)) => mounts.add_kept(&kept.join(name), Path::new(target))?,
            (_, _, None) => {}
        }
    }
    if let (Root::Host(Tools::Owner), Some(home)) = (&spec.root, sources.home) {
        for tree in OwnerTools::find(home).trees() {
            mounts.add_tool(tree)?;
        }
    }
    for mount in &spec.mounts {
        mounts.add(mount)?;
    }
    Ok(mounts.finish())
}

/// The directories that everything else is put into.
fn skeleton(spec: &SandboxSpec, ids: &IdMap) -> Result<Vec<Step>, JailError> {
    let agent =
        if ids.has_root() { Owner::Agent { uid: spec.user.uid, gid: spec.user.gid } } else { Owner::Builder };
    let host_only: &[&str] = match &spec.root {
        Root::Host(_) => &["/etc", "/home", "/run", "/usr", "/var", "/opt", "/srv"],
        // These are the image's, as far as it has them.
        Root::Image(_) => &[],
    };
    let fixed = [
        "/.agentbox",
        "/.agentbox/empty",
        "/dev",
        "/dev/pts",
        "/mnt",
        "/mnt/user-data",
        "/proc",
        "/sys",
        "/sys/devices",
        "/sys/devices/system",
        "/sys/devices/system/cpu",
        "/sys/fs",
        "/sys/fs/cgroup",
    ];
    let fixed = fixed.iter().chain(host_only).map(|path| (*path, 0o755, Owner::Builder));
    let is_image = matches!(spec.root, Root::Image(_));
    let writable =
        WRITABLE.iter().filter(|path| !(is_image && **path == "/home/agent")).map(|path| match *path {
            "/tmp" | "/dev/shm" => (*path, 0o1777, Owner::Builder),
            "/home/agent" => (*path, 0o700, agent),
            path => (path, 0o755, agent),
        });
    let mut steps = Vec::new();
    for (path, mode, owner) in fixed.chain(writable) {
        steps.push(Step::Directory { path: inside(Path::new(path))?, mode, owner });
    }
    let links = [("../tmp", "/var/tmp"), ("../run", "/var/run")];
    for (target, path) in links.into_iter().filter(|_| !is_image) {
        steps.push(link(target, path)?);
    }
    Ok(steps)
}

/// Programs and libraries of the host, for a runtime that needs some.
pub(crate) fn system_trees() -> Result<Vec<Step>, JailError> {
    system::steps(Path::new("/"))
}

fn link(target: &str, path: &str) -> Result<Step, JailError> {
    Ok(Step::Symlink { target: host_path(Path::new(target))?, path: inside(Path::new(path))? })
}

/// The step that brings a tree of the host's in, as it is. Root's builder has left root's id behind when it
/// gets there, so for root the keeper takes hold of the tree before.
fn bring(source: &Path, target: &Path, bound: Bound, ids: &IdMap) -> Result<Step, JailError> {
    let path = inside(target)?;
    Ok(match ids {
        IdMap::Range { .. } => Step::Attach { tree: idmap::tree(source, bound)?, path },
        IdMap::Subordinate { .. } | IdMap::Single => Step::Bind { source: host_path(source)?, path, bound },
    })
}
