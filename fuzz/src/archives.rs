//! Archives of images: any bytes are taken into an empty store beside a canary. Whatever they say, the canary is as it was,
//! and what has its name in the store is whole: each blob has its digest, and each image that is listed can be read.

use std::fs;

use images::{Digest, Import, Own, Owners, Reference, Source, Store};

pub(crate) fn check(bytes: &[u8]) {
    let Ok(place) = tempfile::Builder::new().prefix("agentbox-fuzz-").tempdir() else { return };
    let [archive, root, canary] = ["archive", "store", "canary"].map(|name| place.path().join(name));
    if fs::write(&archive, bytes).and_then(|()| fs::write(&canary, "untouched")).is_err() {
        return;
    }
    let Ok(store) = Store::open(&root) else { return };
    let Ok(name) = "fuzz:1".parse::<Reference>() else { return };
    let owners = Owners::Dropped;
    let import = Import { from: Source::Path(&archive), reference: Some(&name), owners };
    if let Err(error) = store.import(&import, &Own { owners }, &|_| {}) {
        let told = error.to_string();
        assert!(!told.contains(char::is_control), "{told:?} is written to a terminal");
    }
    assert_eq!(fs::read(&canary).unwrap_or_default(), b"untouched");
    assert_eq!(fs::read_dir(place.path()).map_or(0, Iterator::count), 3);
    for blob in fs::read_dir(root.join("blobs/sha256")).into_iter().flatten().flatten() {
        let name = blob.file_name().into_string().unwrap_or_default();
        let Ok(found) = fs::read(blob.path()) else { continue };
        assert!(name.starts_with('.') || Digest::of(&found).hex() == name, "{name} is something else");
    }
    for listed in store.list().unwrap_or_default() {
        let read = store.image(listed).map(drop);
        assert!(read.is_ok(), "{read:?} of an image that was taken in");
    }
}
