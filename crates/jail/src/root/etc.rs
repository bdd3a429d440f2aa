//! /etc inside: what programs need to find certificates, libraries and time zones from the host, and
//! synthetic files for who and where one is. Keys, passwords, host names and machine ids stay outside.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use policy::{AGENT_GID, AGENT_UID, SandboxSpec};
use rustix::fs::{Mode, OFlags, RawDir, open};

use crate::error::JailError;
use crate::read;
use crate::root::layers::{Layers, Seen};
use crate::step::{Bound, Owner, Step, host_path, inside};

/// What may come in, below /etc. A name that ends in `*` stands for every name that begins so.
const ALLOWED: [&str; 29] = [
    // Certificates, never private keys.
    "ca-certificates.conf",
    "crypto-policies",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    // Finding libraries and programs.
    "alternatives",
    "ld.so.cache",
    "ld-musl-aarch64.path",
    "ld-musl-x86_64.path",
    // Time, language, keyboards.
    "inputrc",
    "locale.alias",
    "locale.conf",
    "localtime",
    "timezone",
    // What kind of system this is.
    "alpine-release",
    "debian_version",
    "fedora-release",
    "lsb-release",
    "os-release",
    "redhat-release",
    // Names of protocols, ports and file types.
    "mime.types",
    "protocols",
    "services",
    // Programs that do not start, or not as people know them, without their configuration.
    "bash.bashrc",
    "fonts",
    "java-*",
];
/// A file up to this size is copied: that takes a fraction of what a mount takes to make and to undo.
const COPIED: u64 = 32 * 1024;

pub(super) fn steps(host: &Path) -> Result<Vec<Step>, JailError> {
    let mut steps = Vec::new();
    let mut made = BTreeSet::new();
    for name in allowed_names(&host.join("etc")) {
        let source = host.join("etc").join(&name);
        let Ok(metadata) = fs::symlink_metadata(&source) else { continue };
        for parent in Path::new(&name).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            // Ancestors come innermost first; the two-level names here have one each at most two deep.
            made.insert(parent.to_owned());
        }
        let path = inside(&Path::new("/etc").join(&name))?;
        if metadata.is_symlink() {
            // A link stays a link: where it leads outside of what is listed, it dangles.
            let target = fs::read_link(&source)
                .map_err(|source| JailError::File { path: Path::new("/etc").join(&name), source })?;
            steps.push(Step::Symlink { target: host_path(&target)?, path });
        } else if metadata.is_dir() {
            steps.push(Step::Directory { path: path.clone(), mode: 0o755, owner: Owner::Builder });
            steps.push(Step::Bind { source: host_path(&source)?, path, bound: Bound::ReadOnly });
        } else if metadata.is_file() && metadata.len() <= COPIED {
            // What the caller cannot read is none of the sandbox's business.
            if let Ok(contents) = read::stored(&source, metadata.len()) {
                steps.push(Step::File { path, contents });
            }
        } else if metadata.is_file() {
            steps.push(Step::File { path: path.clone(), contents: Vec::new() });
            steps.push(Step::Bind { source: host_path(&source)?, path, bound: Bound::ReadOnly });
        }
    }
    let mut parents = Vec::new();
    for parent in made {
        let path = inside(&Path::new("/etc").join(parent))?;
        parents.push(Step::Directory { path, mode: 0o755, owner: Owner::Builder });
    }
    parents.extend(steps);
    Ok(parents)
}

/// The allowed names that exist, as far as their first part says, patterns filled in. Most of the list is of other
/// distributions, and need not be looked for.
fn allowed_names(etc: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let Ok(directory) = open(etc, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return names;
    };
    let mut room = [MaybeUninit::uninit(); 16 * 1024];
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        let there = entry.file_name().to_bytes();
        // Looked at as bytes: a few hundred names meet each of the list.
        let meant = ALLOWED.iter().filter(|allowed| begins(allowed.as_bytes(), there));
        for allowed in meant {
            match (allowed.ends_with('*'), entry.file_name().to_str()) {
                (false, _) => names.push((*allowed).to_owned()),
                (true, Ok(there)) => names.push(there.to_owned()),
                (true, Err(_)) => {}
            }
        }
    }
    names.sort();
    // One that is replaced meanwhile may be listed twice.
    names.dedup();
    names
}

/// Whether an entry of /etc is what an allowed name begins with: its first part, or all before a `*`.
fn begins(allowed: &[u8], there: &[u8]) -> bool {
    if let Some(beginning) = allowed.strip_suffix(b"*") {
        return there.starts_with(beginning);
    }
    allowed.strip_prefix(there).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The largest list of users that an image may bring.
const LARGEST_LIST: u64 = 1 << 20;
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n";
const RESOLV: &str = "nameserver 10.200.200.1\noptions timeout:2 attempts:1\n";

/// The same over an image: its own lists of users, to which the agent is added, and of the others those that say where
/// one is.
pub(super) fn of_image(spec: &SandboxSpec, layers: &Layers<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let name = host_name(spec);
    let list = |path: &str, otherwise: &str, line: String| {
        let mut list = layers.read(Path::new(path), LARGEST_LIST).unwrap_or_else(|| otherwise.into());
        if !list.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"agent:")) {
            if list.last().is_some_and(|byte| *byte != b'\n') {
                list.push(b'\n');
            }
            list.extend_from_slice(line.as_bytes());
        }
        list
    };
    let has_bash = layers.look(Path::new("/bin/bash")) == Seen::File
        || layers.look(Path::new("/usr/bin/bash")) == Seen::File;
    let shell = if has_bash { "/bin/bash" } else { "/bin/sh" };
    let agent = format!("agent:x:{AGENT_UID}:{AGENT_GID}:agent:/home/agent:{shell}\n");
    let nobody = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
    let groups = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n";
    let mut files = vec![
        ("passwd", list("/etc/passwd", nobody, agent)),
        ("group", list("/etc/group", groups, format!("agent:x:{AGENT_GID}:\n"))),
        ("hostname", format!("{name}\n").into_bytes()),
        ("hosts", hosts(&name).into_bytes()),
        ("resolv.conf", RESOLV.into()),
    ];
    if layers.look(Path::new("/etc/nsswitch.conf")) != Seen::File {
        files.push(("nsswitch.conf", NSSWITCH.into()));
    }
    files
}

fn hosts(name: &str) -> String {
    format!("127.0.0.1 localhost {name}\n::1 localhost ip6-localhost ip6-loopback\n")
}

/// The files that say who and where one is.
pub(super) fn synthetic(spec: &SandboxSpec) -> Result<Vec<Step>, JailError> {
    let name = host_name(spec);
    let (mut passwd, mut group) = (
        format!(
            "root:x:0:0:root:/:/usr/sbin/nologin\n\
             agent:x:{AGENT_UID}:{AGENT_GID}:agent:/home/agent:/bin/bash\n\
             nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
        ),
        format!("root:x:0:\ntty:x:5:\nagent:x:{AGENT_GID}:\nnogroup:x:65534:\n"),
    );
    if spec.user.uid != AGENT_UID {
        let (uid, gid) = (spec.user.uid, spec.user.gid);
        passwd.push_str(&format!("user:x:{uid}:{gid}:user:/home/agent:/bin/bash\n"));
        group.push_str(&format!("user:x:{gid}:\n"));
    }
    let files = [
        ("passwd", passwd),
        ("group", group),
        ("hostname", format!("{name}\n")),
        ("hosts", hosts(&name)),
        ("nsswitch.conf", NSSWITCH.to_owned()),
        ("resolv.conf", RESOLV.to_owned()),
    ];
    let mut steps = Vec::new();
    for (name, contents) in files {
        let path = inside(&Path::new("/etc").join(name))?;
        steps.push(Step::File { path, contents: contents.into_bytes() });
    }
    steps.push(Step::Symlink {
        target: host_path(Path::new("/proc/self/mounts"))?,
        path: inside(Path::new("/etc/mtab"))?,
    });
    Ok(steps)
}

/// The host name inside: the owner's name for the sandbox, or its id.
pub(crate) fn host_name(spec: &SandboxSpec) -> String {
    spec.name.as_ref().map_or_else(|| spec.id.to_string(), ToString::to_string)
}
