//! The one thing that is written to the owner's repository: a ref that keeps the commit a sandbox began with from being
//! collected as garbage while what was done on top of it waits.

use std::fs;

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
    let common = &repository.common_dir;
    let user = fs::metadata(common).ok().map(|metadata| (metadata.uid(), metadata.gid()));
    let user = user.filter(|(uid, _)| rustix::process::geteuid().is_root() && *uid != 0);
    let git = Git::new(common)?.with_settings_of(None, user);
    if git.line(["for-each-ref", "--format=%(refname)", &name(id)])?.is_empty() {
        return Ok(());
    }
    git.run(["update-ref", "-d", &name(id)])?;
    // git leaves the directory; as long as another sandbox has a pin, it stays.
    let _ = fs::remove_dir(common.join("refs/agentbox"));
    Ok(())
}
