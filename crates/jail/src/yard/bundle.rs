//! The bundle's one document, in the words of the OCI runtime specification. Every field that is written is named here:
//! nothing is left to anybody's defaults, some of which give capabilities.

use std::path::{Path, PathBuf};

use policy::Wall;
use serde::Serialize;

use super::{Inside, ROOT, Stack, Yard, gvisor, namespaced};
use crate::error::JailError;
use crate::root::host_name;
use crate::sys;

/// The version of the specification that all runtimes of the last years know.
const VERSION: &str = "1.0.2";
/// The capabilities that init keeps where there are users to choose among, as in a native sandbox.
const INIT_CAPABILITIES: [&str; 4] = ["CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP"];
/// The same on a kernel of the sandbox's own, where no executed file can give any from the start: init need not see to that,
/// which would take as many calls as there are capabilities, each of them dear there.
const OWN_KERNEL_CAPABILITIES: [&str; 3] = ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"];
/// What init needs where there is one id, to show it as the agent's: whoever maps a root's id elsewhere has to be able to
/// give files capabilities. It gives it up with all others at once.
const SINGLE_CAPABILITIES: [&str; 1] = ["CAP_SETFCAP"];
/// The yard's network namespace, as the runtime has it.
const OWN_NETWORK: &str = "/proc/self/ns/net";
/// Where programs are, for a runtime that looks for init's by name; init has a path of its own.
const PATH: &str = "PATH=/usr/bin:/bin";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    oci_version: &'a str,
    root: Root,
    process: Process<'a>,
    /// Only where the name is not the yard's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    mounts: Vec<Mount>,
    linux: Linux,
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Root {
    path: PathBuf,
    readonly: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    terminal: bool,
    user: User,
    args: &'a [String],
    env: [&'a str; 1],
    cwd: &'a str,
    capabilities: Capabilities<'a>,
    rlimits: Vec<Limit>,
    no_new_privileges: bool,
}

#[derive(Serialize)]
struct User {
    uid: u32,
    gid: u32,
}

#[derive(Serialize)]
struct Capabilities<'a> {
    bounding: &'a [&'a str],
    effective: &'a [&'a str],
    permitted: &'a [&'a str],
    inheritable: &'a [&'a str],
    ambient: &'a [&'a str],
}

#[derive(Serialize)]
struct Limit {
    #[serde(rename = "type")]
    kind: &'static str,
    hard: u64,
    soft: u64,
}

/// Something that the runtime mounts.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Mount {
    pub(super) destination: PathBuf,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) source: PathBuf,
    pub(super) options: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Linux {
    namespaces: Vec<Namespace>,
    uid_mappings: Vec<Mapping>,
    gid_mappings: Vec<Mapping>,
    masked_paths: Vec<PathBuf>,
    readonly_paths: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Namespace {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Which it is, where it is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
}

#[derive(Serialize)]
struct Mapping {
    #[serde(rename = "containerID")]
    inside: u32,
    #[serde(rename = "hostID")]
    outside: u32,
    size: u32,
}

/// Writes the document of a sandbox.
pub(super) fn write(yard: &Yard, inside: &Inside<'_>) -> Result<Vec<u8>, JailError> {
    let own_kernel = yard.backend.has_own_kernel();
    let (users, groups) = inside.ids.pieces();
    let (mounts, annotations) = if own_kernel {
        (gvisor::mounts(inside), gvisor::annotations(inside))
    } else {
        (namespaced::mounts(inside), std::collections::BTreeMap::new())
    };
    let masked = |names: &[&str]| names.iter().map(|name| Path::new("/proc").join(name)).collect::<Vec<_>>();
    let (masked_paths, readonly_paths) = if own_kernel {
        (Vec::new(), Vec::new())
    } else {
        let hidden = [&crate::root::HIDDEN_FILES[..], &crate::root::HIDDEN_DIRECTORIES[..]].concat();
        (masked(&hidden), masked(&["sys"]))
    };
    let document = Document {
        oci_version: VERSION,
        root: Root { path: Path::new("/").join(ROOT), readonly: true },
        process: Process {
            terminal: false,
            user: User { uid: 0, gid: 0 },
            args: inside.arguments,
            env: [PATH],
            cwd: "/",
            capabilities: capabilities(yard, inside),
            rlimits: inside.limits.iter().filter_map(limit).collect(),
            no_new_privileges: inside.weaken.keeps(Wall::NoNewPrivileges),
        },
        hostname: own_kernel.then(|| host_name(inside.spec)),
        mounts,
        linux: Linux {
            namespaces: namespaces(yard, inside),
            uid_mappings: users.into_iter().map(same).collect(),
            gid_mappings: groups.into_iter().map(same).collect(),
            masked_paths,
            readonly_paths,
        },
        annotations,
    };
    serde_json::to_vec(&document).map_err(JailError::Bundle)
}

/// Ids are the same in the yard: who they are outside was decided there.
fn same((first, size): (u32, u32)) -> Mapping {
    Mapping { inside: first, outside: first, size }
}

/// A further user namespace in every case: what is inside has no authority over the yard's network and mounts, whatever
/// it becomes there. The other namespaces are the yard's own.
fn namespaces(yard: &Yard, inside: &Inside<'_>) -> Vec<Namespace> {
    let mut kinds = vec!["user", "mount"];
    if yard.backend.has_own_kernel() || inside.weaken.keeps(Wall::PidNamespace) {
        kinds.push("pid");
    }
    let mut all: Vec<Namespace> = kinds.into_iter().map(|kind| Namespace { kind, path: None }).collect();
    if yard.backend.has_own_kernel() && Stack::of(inside.spec, inside.weaken) == Stack::Own {
        // It looks for devices where it is told to, and would make a namespace without any.
        all.push(Namespace { kind: "network", path: Some(OWN_NETWORK) });
    }
    all
}

fn capabilities<'a>(yard: &Yard, inside: &Inside<'_>) -> Capabilities<'a> {
    const NONE: &[&str] = &[];
    let (kept, from_files): (&[&str], &[&str]) = match (inside.ids.has_root(), yard.backend.has_own_kernel())
    {
        (true, true) => (&OWN_KERNEL_CAPABILITIES, NONE),
        (true, false) => (&INIT_CAPABILITIES, &INIT_CAPABILITIES),
        (false, _) => (&SINGLE_CAPABILITIES, &SINGLE_CAPABILITIES),
    };
    // What init itself is executed with has to come from somewhere; it inherits what its file cannot give.
    let inherited = if from_files.is_empty() { kept } else { NONE };
    Capabilities {
        bounding: from_files,
        effective: kept,
        permitted: kept,
        inheritable: inherited,
        ambient: NONE,
    }
}

fn limit((resource, value): &(u32, u64)) -> Option<Limit> {
    let kind = match *resource {
        sys::LIMIT_CORE => "RLIMIT_CORE",
        sys::LIMIT_FILES => "RLIMIT_NOFILE",
        sys::LIMIT_PROCESSES => "RLIMIT_NPROC",
        _ => return None,
    };
    Some(Limit { kind, hard: *value, soft: *value })
}
