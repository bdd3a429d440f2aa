//! Programs and libraries of the host: /usr and what distributions put beside it, read-only.

use std::fs;
use std::path::Path;

use crate::error::JailError;
use crate::step::{Bound, Owner, Step, host_path, inside};

/// Trees of programs. The names that are links on most systems become the same links inside.
pub(super) const TREES: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store"];

pub(super) fn steps(host: &Path) -> Result<Vec<Step>, JailError> {
    let mut steps = Vec::new();
    for name in TREES {
        let source = host.join(name);
        let Ok(metadata) = fs::symlink_metadata(&source) else { continue };
        let path = inside(Path::new(name))?;
        if metadata.is_symlink() {
            let target = fs::read_link(&source).map_err(|error| unreadable(&source, error))?;
            steps.push(Step::Symlink { target: host_path(&target)?, path });
        } else if metadata.is_dir() {
            if name == "nix/store" {
                steps.push(directory("nix")?);
            }
            if name != "usr" {
                steps.push(directory(name)?);
            }
            steps.push(Step::Bind { source: host_path(&source)?, path, bound: Bound::ReadOnly });
        }
    }
    Ok(steps)
}

fn directory(name: &str) -> Result<Step, JailError> {
    Ok(Step::Directory { path: inside(Path::new(name))?, mode: 0o755, owner: Owner::Builder })
}

fn unreadable(path: &Path, source: std::io::Error) -> JailError {
    JailError::File { path: path.to_owned(), source }
}
