//! What a pull meets half way: an image that is not for us, a disk without room, its own end. A clear word, nothing
//! listed, and the next try goes on.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::{Running, callers, host_processes, is_root};
use images::Digest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::full::Disk;
use crate::layout::{Layout, architecture};
use crate::place::{Place, busybox, seen};
use crate::served::{Registry, Wants};
use crate::tar::Tar;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Puts the image of a layout into a registry; gives its name.
fn push(place: &Place, registry: &Registry, layout: &Layout, name: &str) -> String {
    let path = place.path("pushed");
    let _ = fs::remove_dir_all(&path);
    layout.write(&path);
    registry.push(&path, name);
    format!("127.0.0.1:{}/{name}", registry.port)
}

callers!(what_is_not_for_us_is_named, |caller| {
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    let whole = Layout::of(&[busybox().finish()]);
    push(&place, &registry, &whole, "me/app:1");
    push(&place, &registry, &Layout { architecture: Some("s390x".to_owned()), ..whole }, "me/app:other");
    // The registry takes what it does not know itself.
    let manifest = registry.manifest("me/app", "1");
    let mut unknown: Value = serde_json::from_str(&manifest).unwrap();
    unknown["layers"][0]["mediaType"] = json!("application/vnd.evil.layer\u{1b}[2J");
    registry.put("me/app", "unknown", MANIFEST, &unknown.to_string());
    let other = registry.manifest("me/app", "other");
    let entry = |text: &str, architecture: &str| {
        let digest = Digest::of(text.as_bytes()).to_string();
        let platform = json!({"os": "linux", "architecture": architecture});
        json!({"mediaType": MANIFEST, "digest": digest, "size": text.len(), "platform": platform})
    };
    let index =
        |entries: &[Value]| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string();
    registry.put("me/app", "index", INDEX, &index(&[entry(&other, "s390x"), entry(&other, "riscv64")]));
    // One that says of itself that it is for us, and is not.
    registry.put("me/app", "liar", INDEX, &index(&[entry(&other, architecture())]));
    registry.put(
        "me/app",
        "both",
        INDEX,
        &index(&[entry(&other, "s390x"), entry(&manifest, architecture())]),
    );

    let name = |tag: &str| format!("127.0.0.1:{}/me/app:{tag}", registry.port);
    let ours = format!("the image is not for linux/{}; it is for ", architecture());
    for (tag, word) in [
        ("unknown", "a layer is of the type 'application/vnd.evil.layer\\u{1b}[2J', which is not known here"),
        ("other", &format!("{ours}linux/s390x")),
        ("index", &format!("{ours}linux/s390x, linux/riscv64")),
        ("liar", &format!("{ours}linux/s390x")),
    ] {
        let told = place.say(&["image", "pull", &name(tag)]).assert_code(125).stderr();
        assert!(told.contains(word) && !told.contains('\u{1b}'), "{tag}: {told:?}");
        let hint = if tag == "unknown" {
            "hint: images of layers that are tars"
        } else {
            "hint: choose a tag that is for"
        };
        assert!(told.contains(hint), "{tag}: {told:?}");
        assert_eq!((place.images(), place.layers()), (Vec::new(), Vec::new()), "{tag}");
    }
    // Of two the one for us is taken.
    place.say(&["image", "pull", &name("both")]).assert_success();
    assert_eq!(place.run(&name("both"), "echo well"), "well\n");
});

callers!(a_disk_that_is_full_half_way_is_gone_on_with, |caller| {
    if !is_root("a small disk is mounted") {
        return;
    }
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    let large = Tar::default().file("large", &vec![7; 24 << 20]).file("mark", b"well\n");
    let layout = Layout::of(&[busybox().finish(), large.finish()]);
    let name = push(&place, &registry, &layout, "me/app:1");
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    let disk = Disk(&state);
    let owned = format!("mode=0700,uid={},gid={}", caller.uid(), caller.gid());
    // Room for the blobs, which packed are small, and for the lower layer.
    disk.size(&format!("size=16m,{owned}"));
    let told = place.say(&["image", "pull", &name]).assert_code(125).stderr();
    assert!(told.contains("No space left on device") && told.contains("hint: make room"), "{told}");
    assert_eq!(place.images(), Vec::<String>::new());
    assert!(place.layers().iter().all(|name| !name.starts_with('.')), "{:?}", place.layers());
    disk.size(&format!("size=64m,{owned},remount"));
    // What has come stays, and is not brought again.
    let whole = || -> Vec<_> {
        let blobs = seen(&place.store().join("blobs/sha256")).into_iter();
        // The manifest is small, and asked for each time.
        let is_layer = |path: &PathBuf, size: u64| path.file_name().unwrap().len() == 64 && size > 10_000;
        blobs.filter(|(path, facts)| is_layer(path, facts[3])).collect()
    };
    let had = whole();
    assert!(!had.is_empty());
    place.say(&["image", "pull", &name]).assert_success();
    assert_eq!(place.run(&name, "cat /mark; stat -c %s /large"), format!("well\n{}\n", 24 << 20));
    assert!(had.iter().all(|blob| whole().contains(blob)), "{had:?} {:?}", whole());
    place.say(&["image", "rm", &name]).assert_success();
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(place.layers(), Vec::<String>::new());
});

/// A layer that takes a while.
fn long_layer() -> Tar {
    let files = (0..20_000).map(|number| format!("many/{number}"));
    let many = Tar::default().directory("many/", 0o755, (0, 0));
    files.fold(many, |tar, name| tar.file(&name, b"x")).file("mark", b"well\n")
}

/// Starts a pull that stands still in the middle of its long layer; gives what unpacks it.
fn half_way(place: &Place, name: &str) -> (Running, Vec<i32>) {
    let mut tries = 0..5;
    loop {
        let pull = place.start(&["image", "pull", name]);
        let workers = hold_half_way(place, &pull);
        if !workers.is_empty() {
            return (pull, workers);
        }
        // It was faster than whoever looked on.
        pull.finish().assert_success();
        assert!(tries.next().is_some(), "it is never in the middle");
        place.say(&["image", "rm", name]).assert_success();
        place.say(&["image", "gc"]).assert_success();
    }
}

/// Waits until so many files are there, and stops what unpacks them; nothing, where it is over by then.
fn hold_half_way(place: &Place, pull: &Running) -> Vec<i32> {
    let begun = Instant::now();
    let layers = place.store().join("layers");
    let unpacked = || {
        let unnamed = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
        let found = fs::read_dir(&layers).into_iter().flatten().flatten().filter(unnamed);
        let files = found.map(|entry| fs::read_dir(entry.path().join("many")).map_or(0, Iterator::count));
        files.max().unwrap_or(0)
    };
    while unpacked() < 500 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is unpacked: {}", pull.stderr());
        if is_gone(pull.pid()) {
            return Vec::new();
        }
    }
    let workers = host_processes().into_iter().filter(|process| process.parent == pull.pid());
    let workers: Vec<i32> = workers.map(|process| process.pid).collect();
    for worker in &workers {
        signal(*worker, Signal::STOP);
    }
    let has_stopped =
        |pid: &i32| harness::HostProcess::read(*pid).is_some_and(|process| process.state == 'T');
    while !workers.iter().all(|pid| has_stopped(pid) || is_gone(*pid)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "what unpacks does not stop");
    }
    if unpacked() > 0 {
        return workers;
    }
    for worker in workers {
        signal(worker, Signal::CONT);
    }
    Vec::new()
}

fn signal(pid: i32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

fn is_gone(pid: i32) -> bool {
    harness::HostProcess::read(pid).is_none_or(|process| process.state == 'Z')
}

// Not at a moment that we have named, but in the middle of it: whoever was called, and whoever unpacks.
callers!(who_is_killed_while_it_unpacks_is_gone_on_with, |caller| {
    if !is_root("layers of other ids are looked into") {
        return;
    }
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    let layout = Layout::of(&[busybox().finish(), long_layer().finish()]);
    let name = push(&place, &registry, &layout, "me/app:1");
    let unnamed = |place: &Place| -> Vec<PathBuf> {
        let names = place.layers().into_iter().filter(|name| name.starts_with('.'));
        names.map(|name| place.store().join("layers").join(name)).collect()
    };

    let (pull, workers) = half_way(&place, &name);
    pull.signal(Signal::KILL);
    assert_ne!(pull.finish().code, 0);
    for worker in &workers {
        signal(*worker, Signal::CONT);
    }
    let begun = Instant::now();
    while !workers.iter().all(|pid| is_gone(*pid)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "what unpacks goes on without us");
    }
    assert_eq!(place.images(), Vec::<String>::new());
    assert!(!unnamed(&place).is_empty(), "it was not in the middle");
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(unnamed(&place), Vec::<PathBuf>::new());

    let (pull, workers) = half_way(&place, &name);
    for worker in workers {
        signal(worker, Signal::KILL);
    }
    let told = pull.finish().assert_code(125).stderr();
    assert!(told.starts_with("error: ") && told.contains("cause: "), "{told}");
    assert_eq!(place.images(), Vec::<String>::new());

    place.say(&["image", "pull", &name]).assert_success();
    assert_eq!(place.run(&name, "cat /mark; ls /many | sort -u | grep -c ."), "well\n20000\n");
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(unnamed(&place), Vec::<PathBuf>::new());
    assert_eq!(place.layers().len(), 2);
});
