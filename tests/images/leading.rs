//! Layers that lead out of where they are unpacked, by names and by links of their own, taken in and brought from a
//! registry (isolation.md 5). The host's canary is as it was, and nothing has their name anywhere around the store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use harness::{Finished, callers};
use images::Guard;

use crate::layout::Layout;
use crate::place::{Place, is_once, seen};
use crate::served::{Registry, Wants};
use crate::tar::{Entry, Tar};

/// How an image gets into the store: its name there, and how that went.
type Bring<'a> = &'a dyn Fn(&Place, &Layout) -> (String, Finished);

/// A directory of the host's that everybody may write to, and that nothing may come by.
pub(crate) fn canary(place: &Place) -> PathBuf {
    let path = place.path("canary");
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), "untouched").unwrap();
    for (path, mode) in [(path.clone(), 0o777), (path.join("file"), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    path
}

/// Layers that lead to a directory of the host's by a link of their own, which only how it is opened keeps them from.
fn by_links(outside: &str) -> Vec<(&'static str, Tar)> {
    let up = upwards(outside);
    let out = || Tar::default().link("out", outside);
    vec![
        ("through a link", out().file("out/evil", b"x")),
        ("through a link that leads up", Tar::default().link("out", &up).file("out/evil", b"x")),
        ("a directory through a link", out().directory("out/evil/", 0o777, (0, 0))),
        ("a whiteout through a link", out().file("out/.wh.gone", b"")),
        ("hiding through a link", out().file("out/.wh..wh..opq", b"")),
        ("a hard link through a link", out().hard_link("evil", "out/file")),
    ]
}

fn upwards(outside: &str) -> String {
    format!("{}{}", "../".repeat(20), outside.trim_start_matches('/'))
}

/// Layers whose names or numbers are refused before anything is opened.
fn by_names(outside: &str) -> Vec<(&'static str, Tar)> {
    let (up, file) = (upwards(outside), format!("{outside}/file"));
    let named = |name: &str| Tar::default().extended(&[("path", name)]);
    vec![
        ("upwards", Tar::default().file(&format!("{up}/evil"), b"x")),
        ("upwards within", Tar::default().file(&format!("a/../{up}/evil"), b"x")),
        ("absolute", Tar::default().file(&format!("{outside}/evil"), b"x")),
        ("a hard link out", Tar::default().hard_link("evil", &file)),
        ("a hard link up", Tar::default().hard_link("evil", &format!("{up}/file"))),
        ("a long name by PAX", named(&format!("{outside}/evil")).file("x", b"x")),
        ("a long link by PAX", Tar::default().extended(&[("linkpath", &file)]).hard_link("evil", "x")),
        ("two names by PAX", Tar::default().extended(&[("path", "a"), ("path", "b")]).file("x", b"x")),
        ("a size by PAX", Tar::default().extended(&[("size", "99999999999999")]).file("x", b"x")),
        ("a sparse file", Tar::default().extended(&[("GNU.sparse.major", "1")]).file("x", b"x")),
        ("a whiteout of nothing", Tar::default().file("a/.wh.", b"")),
        ("a whiteout upwards", Tar::default().file("a/.wh...", b"")),
        ("a whiteout above all", Tar::default().file(".wh...", b"")),
        ("a whiteout of the place itself", Tar::default().file("a/.wh..", b"")),
        ("a whiteout of a way up", Tar::default().file(&format!("{up}/.wh.file"), b"")),
        ("hiding what is above", Tar::default().file("../.wh..wh..opq", b"")),
        ("a step up", Tar::default().file("../evil", b"x")),
        ("a link made above", Tar::default().link("../evil", outside)),
        ("a directory above", Tar::default().directory("../evil/", 0o777, (0, 0))),
        ("a device above", Tar::default().entry(Entry { name: "../evil", kind: b'3', ..Entry::PLAIN })),
        ("a whiteout as a directory", Tar::default().file(".wh.a/b", b"x")),
        ("too deep", named(&"d/".repeat(200)).directory("x/", 0o755, (0, 0))),
    ]
}

/// What bears the name of such a layer's file, anywhere in the place but where layouts lie.
fn strayed(place: &Place) -> Vec<PathBuf> {
    let all = seen(&place.path("state")).into_keys();
    all.filter(|path| path.file_name().is_some_and(|name| name == "evil")).collect()
}

/// Brings each of them, and says which did something.
fn led_away(
    place: &Place,
    cases: &dyn Fn(&str) -> Vec<(&'static str, Tar)>,
    bring: Bring<'_>,
) -> Result<(), String> {
    let mut breaches = Vec::new();
    for (what, tar) in cases(&place.path("canary").display().to_string()) {
        let canary = canary(place);
        let before = seen(&canary);
        let (name, brought) = bring(place, &Layout::of(&[tar.finish()]));
        if seen(&canary) != before {
            breaches.push(format!("{what}: the host has another file"));
        } else if brought.code == 0 {
            breaches.push(format!("{what}: it was taken in"));
        } else {
            let told = brought.assert_code(125).stderr();
            assert!(told.starts_with("error: cannot unpack the layer sha256:"), "{what}: {told}");
            assert_eq!(strayed(place), Vec::<PathBuf>::new(), "{what}");
            assert_eq!(place.layers(), Vec::<String>::new(), "{what}");
            assert_eq!(place.images(), Vec::<String>::new(), "{what}");
            continue;
        }
        place.say(&["image", "rm", &name]);
        place.say(&["image", "gc"]);
    }
    if breaches.is_empty() { Ok(()) } else { Err(breaches.join("; ")) }
}

callers!(archives_that_lead_away_are_refused, |caller| {
    if !is_once() {
        return;
    }
    let import: Bring<'_> = &|place, layout| ("evil:1".to_owned(), place.import(layout, "evil:1"));
    let place = Place::new(caller);
    assert_eq!(led_away(&place, &by_names, import), Ok(()));
    // Two keep them in, and either is enough.
    let both = [Guard::Beneath, Guard::Confined];
    crate::guarded::stands(caller, &both, &|place| led_away(place, &by_links, import));
    assert_eq!(led_away(&Place::without(caller, &[Guard::Confined]), &by_links, import), Ok(()));
    let modules = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_else(|_| "landlock".to_owned());
    if modules.contains("landlock") {
        let place = Place::without(caller, &[Guard::Beneath]);
        assert_eq!(led_away(&place, &by_links, import), Ok(()));
    }
});

callers!(what_a_registry_has_leads_nowhere, |caller| {
    if !is_once() {
        return;
    }
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    let pull: Bring<'_> = &|place, layout| {
        let path = place.path("pushed");
        let _ = fs::remove_dir_all(&path);
        layout.write(&path);
        registry.push(&path, "me/evil:1");
        let name = format!("127.0.0.1:{}/me/evil:1", registry.port);
        let pulled = place.say(&["image", "pull", &name]);
        (name, pulled)
    };
    assert_eq!(led_away(&Place::new(caller), &by_names, pull), Ok(()));
    let both = [Guard::Beneath, Guard::Confined];
    crate::guarded::stands(caller, &both, &|place| led_away(place, &by_links, pull));
});
