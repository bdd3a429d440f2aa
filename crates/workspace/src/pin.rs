//! The one thing that is written to the owner's repository: a ref that keeps the commit a sandbox began with from being
//! collected as garbage while what was done on top of it waits.

use std::fs;
use std::path::Path;

use policy::SandboxId;
use rustix::fs::{Access, access};

use crate::git::Git;
use crate::layout::Layout;
use crate::owner::Owner;
use crate::record::{Files, Recorded};
use crate::refusal::Refusal;

fn name(id: &SandboxId) -> String {
    format!("refs/agentbox/{id}")
}

/// Pins a commit. In a repository that the caller may only read, nobody but others could collect it, and it is left.
pub(crate) fn pin(layout: &Layout, owner: &Owner, id: &SandboxId, commit: &str) -> Result<(), Refusal> {
    let common = layout.common.path();
    if access(common.join("refs"), Access::WRITE_OK).is_err() {
        return Ok(());
    }
    let git = Git::new(common)?.with_settings_of(None, owner.other_user());
    git.run(["update-ref", &name(id), commit])?;
    Ok(())
}

/// Takes the pin of a sandbox away, if there is one: nothing of it will be applied any more.
pub fn unpin(files: &Files, id: &SandboxId) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt as _;
    let Some(repository) = Recorded::read(files).and_then(|recorded| recorded.repository) else {
        return Ok(());
    };
    let directory = repository.common_dir.join("refs/agentbox");
    if !directory.join(id.as_str()).exists() && !is_packed(&repository.common_dir, id) {
        return Ok(());
    }
    let user = fs::metadata(&repository.common_dir).ok().map(|metadata| (metadata.uid(), metadata.gid()));
    let user = user.filter(|(uid, _)| rustix::process::geteuid().is_root() && *uid != 0);
    let git = Git::new(&repository.common_dir)?.with_settings_of(None, user);
    git.run(["update-ref", "-d", &name(id)])?;
    // git leaves the directory; as long as another sandbox has a pin, it stays.
    let _ = fs::remove_dir(directory);
    Ok(())
}

/// Whether the owner's git has packed the pin with all other refs.
fn is_packed(common: &Path, id: &SandboxId) -> bool {
    let packed = fs::read(common.join("packed-refs")).unwrap_or_default();
    let name = name(id);
    packed.windows(name.len()).any(|window| window == name.as_bytes())
}
