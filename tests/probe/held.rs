//! Files that somebody has written to and not let go of.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::sys;

/// Writes through a map and through a descriptor, closes and syncs neither, and stays.
pub(crate) fn hold(directory: &str) {
    let place = |name: &str| Path::new(directory).join(name);
    let open = |name: &str| {
        File::options().read(true).write(true).create(true).truncate(true).open(place(name)).unwrap()
    };
    let mapped = open("mapped");
    mapped.set_len(8192).unwrap();
    let map = sys::map_shared(&mapped, 8192);
    map[..6].copy_from_slice(b"mapped");
    map[5000..5007].copy_from_slice(b"further");
    let mut written = open("written");
    written.write_all(b"written and more").unwrap();
    written.set_len(7).unwrap();
    written.set_permissions(std::fs::Permissions::from_mode(0o751)).unwrap();
    written.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    let _last = open("held");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
