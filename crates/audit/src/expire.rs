//! Removes the logs of sandboxes that are gone, once they are old enough. Never anything else in the directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use policy::SandboxId;

use crate::head::recover;
use crate::parts::{Directory, unborn_name};
use crate::{Part, ReadError};

/// Removes all parts of each log whose sandbox is not `alive` and whose newest record is older than `older_than`; says
/// whose they were. One that cannot be removed does not keep the others from it, and is tried again next time.
///
/// A log is as old as its last record says, and no older than the kernel says that its file is: whoever wrote it may
/// have been taken over, and must not be able to have it removed early. A record from the future counts for nothing.
pub fn expire(
    directory: &Path,
    older_than: SystemTime,
    alive: impl Fn(&str) -> bool,
) -> Result<Vec<SandboxId>, ReadError> {
    let directory = Directory::open(directory)?;
    // One listing for all: what is looked at once a day may be thousands of logs.
    let mut logs: BTreeMap<SandboxId, Vec<Part>> = BTreeMap::new();
    for (id, part) in directory.parts()? {
        logs.entry(id).or_default().push(part);
    }
    let is_due = |(id, parts): &(SandboxId, Vec<Part>)| {
        !alive(id.as_str()) && is_older(&directory, id, parts, older_than).unwrap_or(false)
    };
    let due = logs.into_iter().filter(is_due).map(|(id, _)| id);
    Ok(due.filter(|id| remove(&directory, id).is_ok()).collect())
}

/// Whether a log was last written before then. Most are too young by their files and not read at all.
fn is_older(
    directory: &Directory,
    id: &SandboxId,
    parts: &[Part],
    than: SystemTime,
) -> Result<bool, ReadError> {
    for part in parts {
        if directory.part(id, *part)?.map_or(UNIX_EPOCH, modified) >= than {
            return Ok(false);
        }
    }
    // A log that is broken gets old all the same.
    let claimed = recover(directory, id).ok().and_then(|end| end.time).map(SystemTime::from);
    let believed = claimed.filter(|claimed| *claimed <= SystemTime::now());
    Ok(believed.is_none_or(|believed| believed < than))
}

fn modified(file: File) -> SystemTime {
    let seconds = file.metadata().map_or(i64::MAX, |metadata| metadata.mtime());
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(u64::from(u32::MAX) << 2))
}

/// Removes a log, the newest part last: what is left by a removal that was interrupted is as old as it was.
fn remove(directory: &Directory, id: &SandboxId) -> Result<(), ReadError> {
    directory.remove_file(&unborn_name(id))?;
    for number in directory.numbers(id)? {
        directory.remove_file(&Part::Numbered(number).file_name(id))?;
    }
    directory.remove_file(&Part::Newest.file_name(id))
}
