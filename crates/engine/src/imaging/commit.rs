//! What a sandbox wrote over its image, kept as a new image. It is read from the host, beneath one directory, while
//! everything inside stands still; nothing inside is asked.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use images::{Image, Progress, Reference};
use policy::{Root, SandboxId};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::Worker;
use crate::error::EngineError;
use crate::start::Engine;

impl Engine {
    /// Keeps what a sandbox that runs has written as a layer over the image that it was made from.
    pub async fn commit(
        &self,
        id: &SandboxId,
        reference: &Reference,
        progress: &Progress<'_>,
    ) -> Result<Image, EngineError> {
        let spec = self.spec(id)?;
        let Root::Image(root) = spec.root else {
            return Err(EngineError::NoImage(id.to_string()));
        };
        let store = self.images()?;
        let _bringing = store.bringing()?;
        let base = store.find(&root.digest)?;
        let init = self.init(id).map_err(ended)?;
        let was_paused = self.is_paused(id);
        if !was_paused {
            self.pause(id).await.map_err(ended)?;
        }
        let layer = self.pack_upper(id, (init, &jail::written_over_image(spec.backend)), &store);
        if !was_paused {
            self.resume(id).await?;
        }
        Ok(store.admit_over(&base, layer?, reference, &Worker::new()?, progress)?)
    }

    /// Packs what lies at a place beneath the root of a sandbox's first process.
    fn pack_upper(
        &self,
        id: &SandboxId,
        (init, place): (i32, &Path),
        store: &images::Store,
    ) -> Result<File, EngineError> {
        let unusable = |source| EngineError::Commit { id: id.to_string(), source };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let upper = rustix::fs::open(format!("/proc/{init}/root"), flags, Mode::empty()).and_then(|root| {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat2(&root, place, flags, Mode::empty(), resolve)
        });
        let upper: OwnedFd = upper.map_err(|errno| unusable(errno.into()))?;
        // As long as it runs the number was its init's.
        if !self.is_running(id) {
            return Err(EngineError::NotWritten(id.to_string()));
        }
        let into = store.spool()?;
        Worker::new()?.pack(&upper, &into, first_id(init).map_err(unusable)?)?;
        Ok(into)
    }
}

/// What was written over an image ends with the processes, and the next start begins without it.
fn ended(error: EngineError) -> EngineError {
    match error {
        EngineError::NotRunning(id) => EngineError::NotWritten(id),
        other => other,
    }
}

/// The id on the host that root inside has, where the worker counts as the host does: root's.
fn first_id(init: i32) -> std::io::Result<u32> {
    if !rustix::process::geteuid().is_root() {
        return Ok(0);
    }
    let map = std::fs::read_to_string(format!("/proc/{init}/uid_map"))?;
    let mut fields = map.split_whitespace();
    match (fields.next(), fields.next().and_then(|first| first.parse().ok())) {
        (Some("0"), Some(first)) => Ok(first),
        _ => Err(std::io::Error::other("its ids are not known")),
    }
}
