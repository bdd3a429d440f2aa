//! One blob on its way: gone on with where it was cut off, some times over, and only while it gets further.

use std::io::Read as _;

use super::client::Client;
use crate::document::Blob;
use crate::error::ImageError;
use crate::progress::{Progress, Step};
use crate::store::{Incoming, Store};

/// How often it may be cut off.
const TRIES: u32 = 4;
const PIECE: usize = 128 * 1024;
/// How often whoever waits is told.
const TELL: u64 = 512 * 1024;

impl Client {
    /// Brings a blob, unless it is here.
    pub(super) fn blob(&self, store: &Store, blob: &Blob, progress: &Progress<'_>) -> Result<(), ImageError> {
        let Some(mut incoming) = store.begin_blob(blob)? else { return Ok(()) };
        let mut tries = 0;
        while incoming.count() < blob.size {
            let before = incoming.count();
            match self.more(&mut incoming, blob, progress) {
                Ok(()) if incoming.count() > before => {}
                // It ended early and in good order: the next answer goes on, or there is none.
                Ok(()) => break,
                Err(error @ ImageError::Unreachable { .. }) => {
                    tries += 1;
                    if tries >= TRIES {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        incoming.finish()?;
        progress(Step::Received { blob: blob.digest.clone(), bytes: blob.size, of: blob.size });
        Ok(())
    }

    /// Takes what one answer gives.
    fn more(&self, incoming: &mut Incoming, blob: &Blob, progress: &Progress<'_>) -> Result<(), ImageError> {
        let what = format!("the blob {}", blob.digest);
        let path = format!("blobs/{}", blob.digest);
        let begun = incoming.count();
        let range = format!("bytes={begun}-");
        let headers: &[(&str, &str)] = if begun > 0 { &[("Range", &range)] } else { &[] };
        let mut answer = self.ask(&path, headers, &what)?;
        let goes_on = answer
            .headers()
            .get("content-range")
            .and_then(|header| header.to_str().ok())
            .is_some_and(|header| header.starts_with(&format!("bytes {begun}-")));
        match answer.status().as_u16() {
            206 if begun > 0 && goes_on => {}
            // It does not go on, and begins anew.
            200 => incoming.restart()?,
            416 => return incoming.restart(),
            _ => return Err(self.refused(&what, answer)),
        }
        let mut reader = answer.body_mut().with_config().limit(blob.size + 1).reader();
        let (mut buffer, mut told) = (vec![0; PIECE], incoming.count());
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) => return Err(self.lost(error)),
            };
            incoming.write(&buffer[..count])?;
            if incoming.count() - told >= TELL {
                told = incoming.count();
                progress(Step::Received { blob: blob.digest.clone(), bytes: told, of: blob.size });
            }
        }
    }
}
