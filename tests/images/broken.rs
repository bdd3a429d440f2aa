//! Images that are damaged or not for us: a clear word, nothing listed, and the store as good as before.

use std::fs;

use harness::callers;
use images::Digest;

use crate::layout::Layout;
use crate::place::{Place, busybox, is_once, open_up};

/// Imports what was done to a layout, which fails with a word; afterwards the whole one is taken in.
fn refused(place: &Place, damage: impl FnOnce(&std::path::Path, &Digest), word: &str) {
    let layout = Layout::of(&[busybox().finish()]);
    let path = place.path("damaged");
    let _ = fs::remove_dir_all(&path);
    let layer = layout.write(&path).remove(0);
    damage(&path, &layer);
    open_up(&path);
    let imported = place.say(&["image", "import", &path.display().to_string(), "bb:1"]);
    assert!(imported.assert_code(125).stderr().contains(word), "{word}: {}", imported.stderr());
    assert_eq!(place.images(), Vec::<String>::new());
    assert_eq!(place.layers(), Vec::<String>::new());
}

callers!(what_is_damaged_is_not_taken_in, |caller| {
    let place = Place::new(caller);
    let blob = |path: &std::path::Path, layer: &Digest| path.join("blobs/sha256").join(layer.hex());
    refused(
        &place,
        |path, layer| {
            let mut bytes = fs::read(blob(path, layer)).unwrap();
            bytes[100_000] ^= 1;
            fs::write(blob(path, layer), bytes).unwrap();
        },
        "and should have sha256:",
    );
    refused(
        &place,
        |path, layer| {
            let bytes = fs::read(blob(path, layer)).unwrap();
            fs::write(blob(path, layer), &bytes[..bytes.len() / 2]).unwrap();
        },
        " bytes and should have ",
    );
    refused(&place, |path, layer| fs::remove_file(blob(path, layer)).unwrap(), "No such file");
    refused(
        &place,
        |path, layer| {
            // A blob that is a link out of the layout.
            fs::remove_file(blob(path, layer)).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", blob(path, layer)).unwrap();
        },
        "cannot use",
    );
    refused(
        &place,
        |path, _| fs::write(path.join("index.json"), "{").unwrap(),
        "index.json cannot be understood",
    );
    refused(
        &place,
        |path, _| fs::write(path.join("index.json"), r#"{"manifests":[]}"#).unwrap(),
        "it holds none",
    );
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    assert_eq!(place.run("bb:1", "echo well"), "well\n");
});

callers!(what_is_not_for_us_is_named, |caller| {
    if !is_once() {
        return;
    }
    let place = Place::new(caller);
    let whole = Layout::of(&[busybox().finish()]);
    let cases = [
        (
            Layout { media_type: Some("application/vnd.evil.layer".to_owned()), ..whole.clone() },
            "a layer is of the type 'application/vnd.evil.layer', which is not known here",
        ),
        (
            Layout { architecture: Some("s390x".to_owned()), ..whole.clone() },
            "the image is not for linux/amd64; it is for linux/s390x",
        ),
        (
            Layout { unpacked: Some(vec![Digest::of(b"other")]), ..whole.clone() },
            "unpacked, it has the digest sha256:",
        ),
        (Layout { unpacked: Some(Vec::new()), ..whole.clone() }, "another number of layers"),
        (Layout { layers: vec![b"no archive at all".repeat(100)], ..whole.clone() }, "not a tar stream"),
        (
            Layout { layers: vec![busybox().finish()[..100_000].to_vec()], ..whole.clone() },
            "the archive is cut off",
        ),
    ];
    for (layout, word) in cases {
        let word = word.replace("amd64", crate::layout::architecture());
        let imported = place.import(&layout, "bb:1");
        assert!(imported.assert_code(125).stderr().contains(&word), "{word}: {}", imported.stderr());
        assert_eq!(place.images(), Vec::<String>::new(), "{word}");
        assert_eq!(place.layers(), Vec::<String>::new(), "{word}");
    }
    // What is left of them is collected.
    place.say(&["image", "gc"]).assert_success();
    assert!(fs::read_dir(place.store().join("blobs/sha256")).unwrap().next().is_none());
});

callers!(what_is_damaged_on_the_disk_is_brought_anew_or_removed, |caller| {
    let place = Place::new(caller);
    let layout = Layout::of(&[busybox().finish()]);
    place.import(&layout, "bb:1").assert_success();
    let blobs = || {
        let found =
            fs::read_dir(place.store().join("blobs/sha256")).unwrap().flatten().map(|entry| entry.path());
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|path| fs::metadata(path).unwrap().len());
        found
    };
    for blob in blobs() {
        let whole = fs::read(&blob).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        fs::write(&blob, &damaged).unwrap();
        let is_layer = whole.len() > 10_000;
        if is_layer {
            // Not seen as long as it is unpacked; then it is named, and gone.
            assert_eq!(place.run("bb:1", "echo well"), "well\n");
            let layer = place.store().join("layers").join(&place.layers()[0]);
            fs::rename(&layer, layer.with_extension("away")).unwrap();
            let told = place.say(&["run", "--image", "bb:1", "--", "true"]).assert_code(125).stderr();
            fs::rename(layer.with_extension("away"), &layer).unwrap();
            assert!(told.contains("and should have sha256:") && told.contains("hint: "), "{told}");
            assert!(!blob.exists(), "it would never be brought again");
        } else {
            let list = place.say(&["image", "ls"]).assert_success().stdout();
            assert!(list.contains("damaged"), "{list}");
            place.say(&["run", "--image", "bb:1", "--", "true"]).assert_code(125);
        }
        place.import(&layout, "bb:1").assert_success();
        assert_eq!(fs::read(&blob).unwrap(), whole);
        assert_eq!(place.run("bb:1", "echo well"), "well\n");
    }
    for blob in blobs() {
        fs::write(blob, "damaged").unwrap();
    }
    place.say(&["image", "inspect", "bb:1"]).assert_code(125);
    place.say(&["image", "rm", "bb:1"]).assert_success();
    assert_eq!(place.images(), Vec::<String>::new());
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(place.layers(), Vec::<String>::new());
    assert_eq!(blobs().len(), 0);
});

callers!(names_are_names, |caller| {
    let place = Place::new(caller);
    for name in ["../../etc/passwd", "UPPER", "a b", "x:y:z", "", "\u{1b}[2J"] {
        let tagged = place.say(&["image", "import", "/nonexistent", name]);
        assert_ne!(tagged.code, 0, "{name}");
        assert!(!tagged.stderr().contains('\u{1b}'));
    }
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    let digest = place.say(&["image", "ls", "-q"]).assert_success().stdout();
    place.say(&["image", "tag", "bb:1", "Registry.Example/me/other:2"]).assert_success();
    assert_eq!(place.images(), ["bb:1", "registry.example/me/other:2"]);
    let beginning = &digest.trim()["sha256:".len()..][..12];
    for name in ["bb:1", "docker.io/library/bb:1", beginning, digest.trim(), &format!("bb@{}", digest.trim())]
    {
        assert_eq!(place.run(name, "echo here"), "here\n", "{name}");
    }
    let unknown = place.say(&["run", "--image", "bb:2", "--", "true"]);
    assert_eq!(
        unknown.assert_code(125).stderr().lines().next(),
        Some("error: there is no image 'bb:2' here")
    );
    place.say(&["image", "rm", "bb:1"]).assert_success();
    assert_eq!(place.run("registry.example/me/other:2", "echo here"), "here\n");
});
