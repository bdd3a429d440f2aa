//! A reviewed workspace is shown at the owner's own path as well. To a kernel of the sandbox's own two mounts of one tree are
//! two trees, of which it could keep nothing in mind; there the second place is a link to the first.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::JailError;
use crate::step::{Step, host_path};

/// The first place, as steps name it.
const FIRST: &CStr = c"workspace";

/// Puts links in place of second mounts of the workspace, and gives the paths inside that they have. A link is relative: what
/// is mounted below it is mounted while the host's root is still there.
pub(super) fn link(steps: &mut Vec<Step>) -> Result<Vec<PathBuf>, JailError> {
    let is_second = |step: &Step| match step {
        Step::Again { source, path, .. } if source.as_c_str() == FIRST && path != source => {
            Some(path.clone())
        }
        _ => None,
    };
    let places: Vec<CString> = steps.iter().filter_map(is_second).collect();
    let is_for_it = |step: &Step| matches!(step, Step::Place { path, .. } if places.contains(path));
    steps.retain(|step| !is_for_it(step));
    for step in steps.iter_mut() {
        if let Some(path) = is_second(step) {
            let above = path.to_bytes().iter().filter(|byte| **byte == b'/').count();
            let target = format!("{}{}", "../".repeat(above), FIRST.to_string_lossy());
            *step = Step::Symlink { target: host_path(Path::new(&target))?, path };
        }
    }
    let inside = |path: &CString| Path::new("/").join(OsStr::from_bytes(path.to_bytes()));
    Ok(places.iter().map(inside).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Owner, Place};

    #[test]
    fn the_second_place_of_a_workspace_is_a_relative_link() {
        let text = |text: &str| CString::new(text).unwrap();
        let place =
            |path: &str| Step::Place { path: text(path), kind: Place::Directory, owner: Owner::Builder };
        let again =
            |source: &str, path: &str| Step::Again { source: text(source), path: text(path), flags: 0 };
        let mut steps = vec![
            again("workspace", "workspace"),
            place("home/me"),
            place("home/me/project"),
            again("workspace", "home/me/project"),
            again("tmp", "tmp"),
        ];
        assert_eq!(link(&mut steps).unwrap(), [PathBuf::from("/home/me/project")]);
        let link = Step::Symlink { target: text("../../workspace"), path: text("home/me/project") };
        let expected = [again("workspace", "workspace"), place("home/me"), link, again("tmp", "tmp")];
        let laid = |steps: &[Step]| format!("{:?}", steps.iter().map(Step::laid).collect::<Vec<_>>());
        assert_eq!(laid(&steps), laid(&expected));
    }
}
