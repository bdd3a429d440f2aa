//! What is set once, in files and in the environment, holds for every sandbox that has a network; what is wrong in a file
//! is named, and nothing starts.

use std::fs;

use harness::{Agentbox, Caller, Internet, callers};
use tempfile::TempDir;

use crate::inside::{attempt, get};
use crate::upstream::Proxy;

/// A configuration directory of the test's own, with one file.
fn configured(caller: Caller, file: &str, text: &str) -> TempDir {
    let place = caller.directory();
    let path = place.path().join("agentbox").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    place
}

fn with(agentbox: Agentbox, place: &TempDir) -> Agentbox {
    agentbox.env("XDG_CONFIG_HOME", place.path().to_str().unwrap())
}

callers!(a_list_that_cannot_be_read_stops_the_start, |caller| {
    let internet = Internet::new();
    for (file, text, line) in [
        ("allowlist.d/own.txt", "allowed.test\nhttp//what\n", "line 2"),
        ("config.toml", "[network]\nupstream = 'none'\n", "line 2: unknown field"),
    ] {
        let place = configured(caller, file, text);
        let agentbox = with(internet.agentbox(caller), &place).options(["--network", "allowlist"]);
        let finished = agentbox.run(["echo", "started"]);
        finished.assert_code(125);
        let (stdout, stderr) = (finished.stdout(), finished.stderr());
        assert!(stderr.contains(file) && stderr.contains(line) && stderr.contains("hint: "), "{stderr}");
        assert_eq!(stdout, "");
        // Who has no network needs none of it.
        with(internet.agentbox(caller), &place).run(["true"]).assert_success();
    }
});

callers!(a_proxy_is_set_once_and_said_otherwise, |caller| {
    let internet = Internet::new();
    let mut proxy = Proxy::start(&internet);
    let ours = "[network]\nupstream-proxy = \"http://me:pass@127.0.0.1:3128\"\n";
    let place = configured(caller, "config.toml", ours);
    let web = format!("tcp allowed.test 80 {}", get("allowed.test"));
    let get = |agentbox: Agentbox| {
        let attempts = attempt(with(agentbox, &place).options(["--allow", "allowed.test"]), &[&web]);
        assert!(attempts.of(&web).starts_with("answered HTTP/1.1 200"), "{}", attempts.of(&web));
    };
    let said = with(internet.agentbox(caller), &place).start_words(&["config", "show"]).finish();
    let path = place.path().join("agentbox/config.toml");
    let expected = format!("network.upstream-proxy = http://…@127.0.0.1:3128  ({})", path.display());
    let said = said.stdout();
    let mut about = said.lines().filter(|line| line.starts_with("network."));
    assert_eq!((about.next(), about.next()), (Some(expected.as_str()), None));
    get(internet.agentbox(caller));
    assert_eq!(
        proxy.asked(1),
        ["CONNECT allowed.test:80 HTTP/1.1 | Proxy-Authorization: Basic bWU6cGFzcw=="]
    );
    // The environment goes before the file, and an option before both.
    get(internet.agentbox(caller).env("AGENTBOX_UPSTREAM_PROXY", "http://127.0.0.1:3128"));
    assert_eq!(proxy.asked(1), ["CONNECT allowed.test:80 HTTP/1.1"]);
    let elsewhere = internet.agentbox(caller).env("AGENTBOX_UPSTREAM_PROXY", "http://127.0.0.1:9");
    get(elsewhere.options(["--upstream-proxy", "none"]));
    assert_eq!(internet.seen().questions().len(), 1, "only who goes without a proxy asks for a name");
});
