//! What runsc is told. Its traps are known from having been stepped into; each has a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policy::network::Mode;
use policy::{Access, Isolation, OciRuntime, Platform, SandboxSpec, Wall, Workspace};

use super::bundle::Mount;
use super::{Inside, ROOT};
use crate::ids::IdMap;
use crate::network::Place;
use crate::root::WRITABLE;
use crate::weaken::Weaken;

/// How many directory entries it keeps at hand, of all trees together; far below the descriptors that it may have.
const ENTRIES: u64 = 50_000;
/// What is its own to make, and lies in its own memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Whose TCP what runs inside speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    /// Nobody's: there is no network.
    None,
    /// The host kernel's, in the yard's namespace.
    Hosts,
    /// Its own kernel's, over a cable.
    Own,
}

impl Stack {
    /// With strict isolation its kernel speaks for itself, which is slower. Without a network namespace there is nothing
    /// for it to have a device in: it would take the host's.
    pub(crate) fn of(spec: &SandboxSpec, weaken: &Weaken) -> Self {
        let may_be_own = weaken.keeps(Wall::NetNamespace) && weaken.keeps(Wall::OwnKernel);
        match (spec.network.mode, spec.isolation) {
            (Mode::None, _) => Self::None,
            (_, Isolation::Strict) if may_be_own => Self::Own,
            _ => Self::Hosts,
        }
    }

    /// Where the packets of a sandbox come from, as the rules of its network see it.
    pub(crate) fn place(spec: &SandboxSpec, weaken: &Weaken) -> Place {
        match Self::of(spec, weaken) {
            Self::Own if spec.backend.has_own_kernel() => Place::BehindCable,
            _ => Place::Here,
        }
    }

    /// As runsc calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Hosts => "host",
            Self::Own => "sandbox",
        }
    }
}

/// The command line. `--rootless` only where there is one id and its kernel does not open files itself, which it would else run
/// as nobody, of whom there is none: it is the root of a namespace of ours already, and refuses with that flag what it can do there.
pub(super) fn command(runtime: &OciRuntime, spec: &SandboxSpec, ids: &IdMap, weaken: &Weaken) -> Vec<String> {
    let platform = runtime.platform.unwrap_or(Platform::Systrap);
    let network = Stack::of(spec, weaken).name();
    let mut words = vec![
        "runsc".to_owned(),
        // A tmpfs of the yard's, which ends with it; so does the namespace that it pins there.
        "--root=/run/runsc".to_owned(),
        format!("--platform={platform}"),
        // The builder has joined the sandbox's cgroups before.
        "--ignore-cgroups".to_owned(),
        // Whatever is written goes to the files that we limit, not to memory of the host's.
        "--overlay2=none".to_owned(),
        "--host-settings=ignore".to_owned(),
        // The yard's network namespace: in it our rules stand, or it has one end of a cable and nothing else. With none,
        // only its own loopback.
        format!("--network={network}"),
        // The host's programs may change while it runs; so may trees that are said to, see below.
        "--file-access=shared".to_owned(),
        "--file-access-mounts=exclusive".to_owned(),
        format!("--dcache={}", entries()),
        format!("--directfs={}", opens_files_itself(spec)),
        // Its last words go where its complaints do.
        "--panic-log=/proc/self/fd/2".to_owned(),
    ];
    if !ids.has_root() && !opens_files_itself(spec) {
        words.push("--rootless".to_owned());
    }
    words.extend(["run", "--bundle=/bundle"].map(str::to_owned));
    words.push(spec.id.to_string());
    words
}

/// Whether its kernel opens files itself. Where it does, it also renames and removes them itself, and it is in another mount
/// namespace than what covers them: to the host's kernel nothing is mounted there then, and a `.git` of the owner's could be
/// put away with all that covers it. The process that it asks otherwise has those mounts. So it opens none where it may
/// write to a tree of the owner's.
pub(super) fn opens_files_itself(spec: &SandboxSpec) -> bool {
    let writes_directly = matches!(spec.workspace, Workspace::Direct(_))
        || spec.mounts.iter().any(|mount| mount.access == Access::ReadWrite);
    spec.isolation != Isolation::Strict && !writes_directly
}

/// As many as are of use, and far fewer than it may have descriptors: each entry holds one, two once it was read, and
/// what is open inside holds others.
fn entries() -> u64 {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    (files / 4).min(ENTRIES)
}

/// What can be written: each a tree of its own, as the root is read-only for it as well.
pub(super) fn mounts(inside: &Inside<'_>) -> Vec<Mount> {
    let size = inside.spec.limits.disk.as_bytes();
    let options = ["nosuid", "nodev", "mode=1777"].map(str::to_owned);
    let memory = Mount {
        destination: PathBuf::from(SHARED_MEMORY),
        kind: "tmpfs",
        source: PathBuf::from("tmpfs"),
        options: options.into_iter().chain([format!("size={size}")]).collect(),
    };
    let trees = trees(inside).into_iter().map(|path| Mount {
        source: outside(&path),
        destination: path,
        kind: "bind",
        options: ["rbind", "nosuid", "nodev"].map(str::to_owned).to_vec(),
    });
    std::iter::once(memory).chain(trees).collect()
}

/// Trees that somebody else may change while it runs have to be looked at again for each name; the others, which are its
/// own, need not. That is said of the former: runsc puts a layer of its own over what is called the sandbox's alone.
pub(super) fn annotations(inside: &Inside<'_>) -> BTreeMap<String, String> {
    let mut hints = BTreeMap::new();
    let others = trees(inside).into_iter().filter(|path| !is_its_own(path, inside));
    for (number, path) in others.enumerate() {
        let mut hint = |what: &str, value: &str| {
            hints.insert(format!("dev.gvisor.spec.mount.tree{number}.{what}"), value.to_owned());
        };
        hint("source", &outside(&path).to_string_lossy());
        hint("type", "bind");
        hint("share", "shared");
        hint("options", "rw");
    }
    hints
}

/// Whether nobody but this sandbox changes a tree, and it only at that place. What the owner changes under a layer
/// meanwhile need not be seen.
fn is_its_own(path: &Path, inside: &Inside<'_>) -> bool {
    let is_below = |other: &Path| other != path && other.starts_with(path);
    let mut others = inside.spec.mounts.iter().map(|mount| mount.target.as_path());
    let holds_anothers = others.any(is_below) || inside.writable.iter().any(|other| is_below(other));
    match path.to_str() {
        Some("/home/agent" | "/tmp") => !holds_anothers,
        Some("/workspace") => match &inside.spec.workspace {
            Workspace::Empty | Workspace::Review(_) => !holds_anothers,
            Workspace::Direct(_) => false,
        },
        _ => false,
    }
}

fn trees(inside: &Inside<'_>) -> Vec<PathBuf> {
    let all = WRITABLE.iter().filter(|path| **path != SHARED_MEMORY).map(PathBuf::from);
    let mut all: Vec<PathBuf> = all.chain(inside.writable.iter().cloned()).collect();
    // What lies below another comes after it.
    all.sort();
    all.dedup();
    all
}

/// Where a path inside is in the yard.
fn outside(path: &Path) -> PathBuf {
    Path::new("/").join(ROOT).join(path.strip_prefix("/").unwrap_or(path))
}
