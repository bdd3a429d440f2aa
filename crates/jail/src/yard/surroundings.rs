//! What stands in a yard beside the sandbox's root: what a runtime needs to run, and nothing of the host's besides.

use std::path::Path;

use policy::Backend;

use super::{RUNTIME, SYSTEM, Yard, directory, namespaced, path};
use crate::error::JailError;
use crate::idmap;
use crate::ids::IdMap;
use crate::step::{Bound, Step, host_path};

/// Files that a runtime brings along, beside itself.
const SIDECARS: &str = "gvisor-bin";
/// The nodes that runtimes open.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

impl Yard {
    /// The yard itself: what a runtime needs to run, and nothing of the host's besides.
    pub(super) fn surroundings(&self, ids: &IdMap) -> Result<Vec<Step>, JailError> {
        let mut steps = Vec::new();
        for (name, mode) in [
            ("bundle", 0o755),
            ("dev", 0o755),
            ("proc", 0o755),
            ("run", 0o755),
            ("tmp", 0o755),
            ("sys", 0o755),
            ("sys/fs", 0o755),
            ("sys/fs/cgroup", 0o755),
        ] {
            steps.push(directory(name, mode)?);
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // Nothing is covered in it: the kernel gives whoever is inside a fresh one only where there is a whole one.
        let proc = flags | libc::MS_NOEXEC;
        steps.push(Step::FileSystem {
            kind: c"proc".to_owned(),
            path: path("proc")?,
            flags: proc,
            options: None,
        });
        for (name, mode) in [("run", "mode=0700"), ("tmp", "mode=1777")] {
            let options = Some(path(mode)?);
            steps.push(Step::FileSystem { kind: c"tmpfs".to_owned(), path: path(name)?, flags, options });
        }
        let virtual_machine = (self.runtime.platform == Some(policy::Platform::Kvm)).then_some("kvm");
        for name in NODES.into_iter().chain(virtual_machine) {
            let (source, node) = (Path::new("/dev").join(name), path(&format!("dev/{name}"))?);
            steps.push(Step::File { path: node.clone(), contents: Vec::new() });
            steps.push(Step::Bind { source: host_path(&source)?, path: node, bound: Bound::Device });
        }
        steps.extend(self.bring_runtime(ids)?);
        if !self.backend.has_own_kernel() {
            steps.extend(namespaced::surroundings(self.backend)?);
        }
        Ok(steps)
    }

    /// The runtime, and what it brings along. runc looks at its own directory through an overlay, which does not see what
    /// is mounted there; so where it is no program of the system's, which has its own place, its directory comes along.
    fn bring_runtime(&self, ids: &IdMap) -> Result<Vec<Step>, JailError> {
        let program = &self.runtime.program;
        if self.backend != Backend::Runc {
            let mut steps = vec![Step::File { path: path(RUNTIME)?, contents: Vec::new() }];
            steps.push(bring(program, RUNTIME, ids)?);
            let sidecars = program.with_file_name(SIDECARS);
            if self.backend.has_own_kernel() && sidecars.is_dir() {
                steps.push(directory(SIDECARS, 0o755)?);
                steps.push(bring(&sidecars, SIDECARS, ids)?);
            }
            return Ok(steps);
        }
        match program.parent() {
            Some(above) if !program.starts_with(SYSTEM) => {
                Ok(vec![directory(RUNTIME, 0o755)?, bring(above, RUNTIME, ids)?])
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// A program or directory of the host's. Root's builder has left root's id behind when it gets there, so for root the
/// keeper takes hold of it before.
fn bring(source: &Path, target: &str, ids: &IdMap) -> Result<Step, JailError> {
    let (path, bound) = (path(target)?, Bound::ReadOnly);
    Ok(match ids {
        IdMap::Range { .. } => Step::Attach { tree: idmap::tree(source, bound)?, path },
        IdMap::Subordinate { .. } | IdMap::Single => Step::Bind { source: host_path(source)?, path, bound },
    })
}
