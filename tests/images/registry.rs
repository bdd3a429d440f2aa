//! Images from a real registry: brought, brought again, cut off and gone on with, damaged, and behind a password.

use std::fs;
use std::sync::atomic::Ordering;

use failpoint::Point;
use harness::callers;
use serde_json::json;

use crate::docker::Docker;
use crate::layout::Layout;
use crate::place::{Place, busybox, is_once};
use crate::served::{Cutter, PASSWORD, Registry, Wants};
use crate::tar::Tar;

/// Bytes that no program makes smaller.
fn noise(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    bytes
}

pub(crate) fn layout(place: &Place) -> std::path::PathBuf {
    let layers = [
        busybox().finish(),
        Tar::default().file("large", &noise(4 << 20)).file("mark", b"pulled\n").finish(),
    ];
    let layout = Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"]})), ..Layout::of(&layers) };
    let path = place.path("layout");
    layout.write(&path);
    path
}

callers!(an_image_is_brought_from_a_registry, |caller| {
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    registry.push(&layout(&place), "me/app:1");
    let name = format!("127.0.0.1:{}/me/app:1", registry.port);
    // Two at once, and once more: all of it comes once.
    let running = [place.start(&["image", "pull", &name]), place.start(&["image", "pull", &name])];
    for pull in running {
        let told = pull.finish();
        assert!(told.assert_success().stdout().starts_with(&format!("{name} sha256:")), "{}", told.stdout());
    }
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
    place.say(&["image", "pull", &name, "--json"]).assert_success();
    assert_eq!(place.images(), [name.as_str()]);
    let digest = place.say(&["image", "ls", "-q"]).assert_success().stdout().trim().to_owned();
    let by_digest = format!("127.0.0.1:{}/me/app@{digest}", registry.port);
    place.say(&["image", "pull", &by_digest]).assert_success();
    let other = format!("sha256:{}", "0".repeat(64));
    let wrong = place.say(&["image", "pull", &format!("127.0.0.1:{}/me/app@{other}", registry.port)]);
    assert!(wrong.assert_code(125).stderr().contains("404"), "{}", wrong.stderr());
    let nothing = place.say(&["image", "pull", &format!("127.0.0.1:{}/me/none:1", registry.port)]);
    assert!(
        nothing.assert_code(125).stderr().contains("answers the manifest '1' with 404 Not Found"),
        "{}",
        nothing.stderr()
    );
    drop(registry);
    let gone = place.say(&["image", "pull", &name]);
    assert!(
        gone.assert_code(125).stderr().starts_with("error: cannot reach 127.0.0.1:"),
        "{}",
        gone.stderr()
    );
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
});

callers!(a_pull_that_is_cut_off_goes_on_where_it_was, |caller| {
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    registry.push(&layout(&place), "me/app:1");
    // Cut off once too often for one command: some of each blob stays.
    let cutter = Cutter::before(registry.port, 300_000, usize::MAX);
    let name = format!("127.0.0.1:{}/me/app:1", cutter.port);
    let cut = place.say(&["image", "pull", &name]);
    assert!(cut.assert_code(125).stderr().contains("error: cannot reach"), "{}", cut.stderr());
    assert!(cutter.cuts.load(Ordering::SeqCst) > 1);
    assert!(!cutter.ranges.lock().unwrap().is_empty(), "it went on by itself first");
    assert_eq!(place.images(), Vec::<String>::new());
    let partial = fs::read_dir(place.store().join("blobs/sha256")).unwrap().flatten();
    let partial: u64 = partial
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(partial > 300_000, "{partial}");
    // The next command asks for the rest alone. It is the same image by the registry's own address.
    let cutter = Cutter::before(registry.port, usize::MAX, 0);
    let name = format!("127.0.0.1:{}/me/app:1", cutter.port);
    place.say(&["image", "pull", &name]).assert_success();
    let ranges = cutter.ranges.lock().unwrap().clone();
    assert!(ranges.iter().any(|range| !range.starts_with("bytes=0-")), "{ranges:?}");
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
});

callers!(a_pull_that_is_killed_goes_on_where_it_was, |caller| {
    let place = Place::weakened(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    registry.push(&layout(&place), "me/app:1");
    // While a blob is on its way: what lets it through holds the rest back.
    let holding = Cutter::holding(registry.port, 300_000);
    let name = format!("127.0.0.1:{}/me/app:1", holding.port);
    let pull = place.start(&["image", "pull", &name]);
    let begun = std::time::Instant::now();
    let partial = || {
        let found = fs::read_dir(place.store().join("blobs/sha256")).into_iter().flatten().flatten();
        let partial = found.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        partial.filter_map(|entry| Some(entry.metadata().ok()?.len())).max().unwrap_or(0)
    };
    while partial() < 100_000 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nothing comes");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    pull.signal(rustix::process::Signal::KILL);
    assert_ne!(pull.finish().code, 0);
    assert_eq!(place.images(), Vec::<String>::new());
    let had = partial();
    assert!(had >= 100_000);
    let cutter = Cutter::before(registry.port, usize::MAX, 0);
    let name = format!("127.0.0.1:{}/me/app:1", cutter.port);
    // And at each moment of what comes then.
    for point in [Point::ImageLayerBegun, Point::ImageLayerUnnamed, Point::ImageUnlisted] {
        let mark = place.path("mark");
        fs::write(&mark, "0").unwrap();
        caller.own(&mark);
        let order = format!("kill {} {}", point.name(), mark.display());
        let killed = place.agentbox().env("AGENTBOX_FAILPOINT", &order);
        assert_ne!(killed.start_words(&["image", "pull", &name]).finish().code, 0, "{}", point.name());
        assert_ne!(fs::read(&mark).unwrap(), b"0", "{} is not come by", point.name());
        assert_eq!(place.images(), Vec::<String>::new(), "{}", point.name());
    }
    place.say(&["image", "pull", &name]).assert_success();
    let ranges = cutter.ranges.lock().unwrap().clone();
    assert!(ranges.iter().any(|range| !range.starts_with("bytes=0-")), "{ranges:?}");
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(place.layers().len(), 2, "{:?}", place.layers());
    assert_eq!(fs::read_dir(place.store().join("blobs/sha256")).unwrap().count(), 4);
});

callers!(what_a_registry_changed_is_not_taken, |caller| {
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    registry.push(&layout(&place), "me/app:1");
    let name = format!("127.0.0.1:{}/me/app:1", registry.port);
    let blobs = registry.blobs();
    assert!(!blobs.is_empty());
    let whole: Vec<Vec<u8>> = blobs.iter().map(|blob| fs::read(blob).unwrap()).collect();
    for (blob, bytes) in blobs.iter().zip(&whole) {
        let mut changed = bytes.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(blob, changed).unwrap();
    }
    let pulled = place.say(&["image", "pull", &name]);
    assert!(pulled.assert_code(125).stderr().contains("and should have sha256:"), "{}", pulled.stderr());
    assert_eq!(place.images(), Vec::<String>::new());
    assert_eq!(place.layers(), Vec::<String>::new());
    for (blob, bytes) in blobs.iter().zip(&whole) {
        fs::write(blob, &bytes[..bytes.len() - 1000]).unwrap();
    }
    let pulled = place.say(&["image", "pull", &name]);
    pulled.assert_code(125);
    assert_eq!(place.images(), Vec::<String>::new());
    for (blob, bytes) in blobs.iter().zip(&whole) {
        fs::write(blob, bytes).unwrap();
    }
    place.say(&["image", "pull", &name]).assert_success();
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
});

callers!(passwords_come_from_where_docker_leaves_them, |caller| {
    let place = Place::new(caller);
    let Some(registry) = Registry::start(Wants::Password) else { return };
    registry.push(&layout(&place), "me/app:1");
    let host = format!("127.0.0.1:{}", registry.port);
    let name = format!("{host}/me/app:1");
    let docker = Docker::new(&place);
    let pull = |configuration: &str| {
        docker.write(configuration);
        docker.agentbox().start_words(&["image", "pull", &name]).finish()
    };
    let told = pull("{}").assert_code(125).stderr();
    assert!(told.contains("401 Unauthorized") && told.contains("hint: log in with `docker login "), "{told}");
    let told = pull(&docker.password(&host, "wrong")).assert_code(125).stderr();
    let expected = format!("hint: it does not take what '{}' has for it", docker.file().display());
    assert!(told.contains("401") && told.contains(&expected) && !told.contains("wrong"), "{told}");
    pull(&docker.password(&host, PASSWORD)).assert_success();
    place.say(&["image", "rm", &name]).assert_success();
    place.say(&["image", "gc"]).assert_success();
    // A helper is asked by its name, with the registry on its stdin.
    docker.helper("test", &host, "me", PASSWORD);
    pull(&format!(r#"{{"credHelpers":{{"{host}":"test"}}}}"#)).assert_success();
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
    let told = pull(r#"{"credsStore":"not-installed"}"#).assert_code(125).stderr();
    assert!(
        told.contains("hint: docker's configuration names it: install `docker-credential-not-installed`"),
        "{told}"
    );
    let evil = pull(r#"{"credsStore":"../../../bin/sh"}"#);
    assert!(evil.assert_code(125).stderr().contains("the credential helper"), "{}", evil.stderr());
});

callers!(nobody_is_asked_in_plain_but_this_machine, |caller| {
    if !is_once() {
        return;
    }
    let place = Place::new(caller);
    // The kernel leads this address to the loopback, but it is no loopback address to anybody who reads it.
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let pulled = place.say(&["image", "pull", &format!("0.0.0.0:{port}/me/app:1")]);
    assert!(pulled.assert_code(125).stderr().contains("cannot reach"), "{}", pulled.stderr());
    let mut first = [0; 4];
    let (mut client, _) = listener.accept().unwrap();
    client.set_nonblocking(false).unwrap();
    let _ = std::io::Read::read(&mut client, &mut first);
    // A TLS handshake, and not a word of HTTP.
    assert_eq!(first[0], 0x16, "{first:?}");
});
