//! Where the owner's side finds what a sandbox has written over its image. Whoever opens it does so beneath the root of that
//! sandbox's first process: what lies there is hostile.

use std::path::{Path, PathBuf};

use policy::Backend;

use super::ROOT;
use crate::root::UPPER;

/// Where what is written over an image lies, from the root of a sandbox's first process on: with a yard that process is the
/// runtime, and has the yard for its root.
#[must_use]
pub fn written_over_image(backend: Backend) -> PathBuf {
    let upper = UPPER.trim_start_matches('/');
    match backend {
        Backend::Native => PathBuf::from(upper),
        Backend::Gvisor | Backend::Crun | Backend::Runc => Path::new(ROOT).join(upper),
    }
}
