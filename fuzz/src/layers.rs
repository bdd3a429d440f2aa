//! Layers: any bytes are unpacked into an empty directory beside a canary. Whatever they say, the canary is as it was,
//! nothing beside the directory comes to be, and no device is in it but those that take something away.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use images::{Digest, Owners, unpack};

pub(crate) fn check(bytes: &[u8]) {
    let Ok(place) = tempfile::Builder::new().prefix("agentbox-fuzz-").tempdir() else { return };
    let (blob, layer, canary) =
        (place.path().join("blob"), place.path().join("layer"), place.path().join("canary"));
    let made = fs::create_dir(&layer)
        .and_then(|()| fs::write(&canary, "untouched"))
        .and_then(|()| File::create(&blob))
        .and_then(|mut file| file.write_all(bytes));
    if made.is_err() {
        return;
    }
    let Ok(file) = File::open(&blob) else { return };
    if let Err(error) = unpack(file, &layer, &Digest::of(bytes), Owners::Dropped) {
        let told = error.to_string();
        assert!(!told.contains(char::is_control), "{told:?} is written to a terminal");
    }
    assert_eq!(fs::read(&canary).unwrap_or_default(), b"untouched");
    assert_eq!(
        fs::metadata(&canary).map_or(0, |canary| canary.nlink()),
        1,
        "a second name leads to the canary"
    );
    assert_eq!(fs::read_dir(place.path()).map_or(0, Iterator::count), 3);
    look(&layer);
}

fn look(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
        let kind = found.file_type();
        assert!(
            !kind.is_block_device() && !kind.is_fifo() && !kind.is_socket(),
            "{}",
            entry.path().display()
        );
        assert!(!kind.is_char_device() || found.rdev() == 0, "{}", entry.path().display());
        if kind.is_dir() {
            look(&entry.path());
        }
    }
}
