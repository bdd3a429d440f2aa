//! The one thing that is written to the owner's repository: a ref that keeps the commit a sandbox began with from being
//! collected as garbage while what was done on top of it waits.
//!
//! Nobody but us names such a ref, so it is written and removed as the file that it is: git would take longer for it than
//! all the rest of a start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use policy::SandboxId;
use rustix::fs::{Access, access};

use crate::git::Git;
use crate::layout::Layout;
use crate::owner::Owner;
use crate::record::{Files, Recorded};
use crate::refusal::Refusal;

/// The directory of all pins.
const PINS: &str = "refs/agentbox";

/// How often a directory is made that another sandbox's end removes at the same moment.
const ATTEMPTS: usize = 8;

fn name(id: &SandboxId) -> String {
    format!("{PINS}/{id}")
}

/// Pins a commit. In a repository that the caller may only read, nobody but others could collect it, and it is left.
pub(crate) fn pin(layout: &Layout, owner: &Owner, id: &SandboxId, commit: &str) -> Result<(), Refusal> {
    let common = layout.common.path();
    if access(common.join("refs"), Access::WRITE_OK).is_err() {
        return Ok(());
    }
    match owner.person.other_user() {
        None => write(common, id, commit)
            .map_err(|source| Refusal::Unusable { path: common.join(name(id)), source }),
        // Whatever is written there belongs to them.
        user => {
            let git = Git::new(common)?.with_settings_of(None, user);
            git.run(["update-ref", &name(id), commit])?;
            Ok(())
        }
    }
}

fn write(common: &Path, id: &SandboxId, commit: &str) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match fs::create_dir(common.join(PINS)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match File::create_new(common.join(name(id))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => return file?.write_all(format!("{commit}\n").as_bytes()),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Takes the pin of a sandbox away, if there is one: nothing of it will be applied any more.
pub fn unpin(files: &Files, id: &SandboxId) -> io::Result<()> {
    let Some(repository) = Recorded::read(files).and_then(|recorded| recorded.repository) else {
        return Ok(());
    };
    let common = &repository.common_dir;
    match fs::remove_file(common.join(name(id))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if is_packed(common, id) {
        let user = fs::metadata(common).map(|metadata| (metadata.uid(), metadata.gid()))?;
        let user = Some(user).filter(|(uid, _)| rustix::process::geteuid().is_root() && *uid != 0);
        let git = Git::new(common).map_err(io::Error::other)?.with_settings_of(None, user);
        git.run(["update-ref", "-d", &name(id)]).map_err(io::Error::other)?;
    }
    // As long as another sandbox has a pin, it stays.
    let _ = fs::remove_dir(common.join(PINS));
    Ok(())
}

/// Whether git has put it into the file of all refs meanwhile, as it does when it tidies up.
fn is_packed(common: &Path, id: &SandboxId) -> bool {
    let line_end = format!(" {}\n", name(id)).into_bytes();
    let packed = fs::read(common.join("packed-refs")).unwrap_or_default();
    packed.windows(line_end.len()).any(|window| window == line_end)
}
