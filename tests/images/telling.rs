//! What a person sees of an image on its way: on a terminal lines that change and go, elsewhere a line for what is done,
//! and stdout is data in both.

use std::time::Duration;

use harness::{Caller, Pty, callers};

use crate::place::{Place, is_once};
use crate::registry::layout;
use crate::served::{Cutter, Registry, Wants};

/// A piece of an answer takes so long that the whole takes some seconds.
const EACH: Duration = Duration::from_millis(5);

/// A registry that takes its time, and the name of an image there.
fn slow(place: &Place) -> Option<(Registry, String)> {
    let registry = Registry::start(Wants::Nothing)?;
    registry.push(&layout(place), "me/app:1");
    let cutter = Cutter::slow(registry.port, EACH);
    Some((registry, format!("127.0.0.1:{}/me/app:1", cutter.port)))
}

/// How far a bar says that all has come, each time that it says it.
fn shares(seen: &str) -> Vec<u32> {
    let lines = seen.split(['\n', '\r']).filter(|line| line.starts_with("all "));
    lines.filter_map(|line| line.split_once("] ")?.1.split_once('%')?.0.trim().parse().ok()).collect()
}

callers!(on_a_terminal_bars_grow_and_go, |caller| {
    if !is_once() {
        return;
    }
    let place = Place::new(caller);
    let Some((_registry, name)) = slow(&place) else { return };
    let mut pty = Pty::start_words(place.agentbox(), &["image", "pull", &name]);
    assert_eq!(pty.finish(), 0, "{}", pty.seen());
    pty.wait_for(&format!("{name} sha256:"));
    let seen = pty.seen();
    let shares = shares(&seen);
    assert!(shares.len() > 2 && shares.is_sorted() && shares.first() < shares.last(), "{shares:?}: {seen:?}");
    assert!(seen.contains("[#") && seen.contains("#.") && seen.contains(" of "), "{seen:?}");
    // Nothing of it is left above the last line: all was taken away, and nothing was drawn afterwards.
    let last = seen.rsplit_once("\u{1b}[J").unwrap().1;
    assert!(last.starts_with(&format!("{name} sha256:")) && last.lines().count() == 1, "{last:?}");
});

callers!(elsewhere_there_is_a_line_for_what_is_done, |caller| {
    if !is_once() {
        return;
    }
    let place = Place::new(caller);
    let Some((_registry, name)) = slow(&place) else { return };
    let pulled = place.say(&["image", "pull", &name]);
    let (stdout, stderr) = (pulled.assert_success().stdout(), pulled.stderr());
    assert!(!stderr.contains(['\u{1b}', '\r', '#', '%']), "{stderr:?}");
    assert!(stderr.lines().any(|line| line.starts_with("received ")), "{stderr:?}");
    assert!(stdout.starts_with(&format!("{name} sha256:")) && stdout.lines().count() == 1, "{stdout:?}");
});

// Somebody who waits for a server that has fallen silent is shown what there is.
#[test]
fn a_pull_that_stands_still_shows_where() {
    if !is_once() {
        return;
    }
    harness::as_caller(Caller::Single, harness::Company::Anybody, |caller| {
        let place = Place::new(caller);
        let Some(registry) = Registry::start(Wants::Nothing) else { return };
        registry.push(&layout(&place), "me/app:1");
        let cutter = Cutter::holding(registry.port, 300_000);
        let name = format!("127.0.0.1:{}/me/app:1", cutter.port);
        let pty = Pty::start_words(place.agentbox(), &["image", "pull", &name]);
        pty.wait_until("a bar", |pty| !shares(&pty.seen()).is_empty());
    });
}
