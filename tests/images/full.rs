//! A disk that is full half way: a clear word, a store that is as good as before, and the next try goes on.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::{Caller, is_root};

use crate::layout::Layout;
use crate::place::{Place, busybox};

/// A small disk, until it is dropped.
pub(crate) struct Disk<'a>(pub(crate) &'a Path);

impl Disk<'_> {
    pub(crate) fn size(&self, options: &str) {
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_half_way_is_gone_on_with() {
    if !is_root("a small disk is mounted") {
        return;
    }
    let _turn = harness::together();
    let place = Place::new(Caller::Root);
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    let disk = Disk(&state);
    let layers = [busybox().finish(), crate::tar::Tar::default().file("large", &vec![7; 3 << 20]).finish()];
    // Room for the blobs and for one of the layers, which is here already.
    let room: usize = layers.iter().map(Vec::len).sum::<usize>() + layers[0].len() + (1 << 20);
    disk.size(&format!("size={room},mode=0700"));
    place.import(&Layout::of(&layers[..1]), "base:1").assert_success();
    let imported = place.import(&Layout::of(&layers), "bb:1");
    let told = imported.assert_code(125).stderr();
    assert!(told.contains("cause: ") && told.contains("No space left on device"), "{told}");
    assert_eq!(place.images(), ["base:1"]);
    assert!(place.layers().iter().all(|name| !name.starts_with('.')), "{:?}", place.layers());
    let had = place.layers();
    assert_eq!(had.len(), 1);
    disk.size(&format!("size={},mode=0700,remount", room * 2));
    let before = had
        .iter()
        .map(|name| fs::metadata(place.store().join("layers").join(name)).unwrap().modified().unwrap());
    let before: Vec<_> = before.collect();
    place.import(&Layout::of(&layers), "bb:1").assert_success();
    let after = had
        .iter()
        .map(|name| fs::metadata(place.store().join("layers").join(name)).unwrap().modified().unwrap());
    assert_eq!(after.collect::<Vec<_>>(), before, "what was there was not made again");
    assert_eq!(place.run("bb:1", "stat -c %s /large"), format!("{}\n", 3 << 20));
    // And one that is full from the first byte on.
    let place = Place::new(Caller::Root);
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    let disk = Disk(&state);
    disk.size("size=64k,mode=0700");
    let told = place.import(&Layout::of(&layers), "bb:1").assert_code(125).stderr();
    assert!(told.contains("No space left on device") && told.contains("hint: make room"), "{told}");
}
