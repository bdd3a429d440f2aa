//! What is allowed by name is reached, by every protocol; what is not is refused, said with what would allow it, and
//! nothing leaves for it.

use harness::{Agentbox, Caller, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control, get};

callers!(an_allowed_name_is_reached_by_tls, |caller| {
    let internet = Internet::new();
    let ca = format!("{}:/ca.pem", internet.ca().display());
    let curl = ["curl", "-sS", "--max-time", "10", "--cacert", "/ca.pem", "https://allowed.test/hello"];
    let finished = internet.agentbox(caller).options(["--allow", "allowed.test", "--mount", &ca]).run(curl);
    finished.assert_success();
    assert!(!finished.stderr().contains("blocked"), "{}", finished.stderr());
    let seen = internet.seen();
    let connections = seen.connections();
    assert_eq!(connections.len(), 1, "{connections:?}");
    assert_eq!(connections[0].sni.as_deref(), Some("allowed.test"));
    assert_eq!(connections[0].requests[0].line, "GET /hello HTTP/1.1");
});

callers!(an_allowed_name_is_reached_by_plain_http, |caller| {
    let internet = Internet::new();
    let curl = ["curl", "-sS", "--max-time", "10", "http://allowed.test/one", "http://allowed.test/two"];
    let finished = internet.agentbox(caller).options(["--allow", "allowed.test"]).run(curl);
    finished.assert_success();
    assert!(finished.stdout().contains("203.0.113.10"), "{}", finished.stdout());
    let seen = internet.seen();
    let lines: Vec<&str> =
        seen.connections().iter().flat_map(|c| &c.requests).map(|r| r.line.as_str()).collect();
    assert_eq!(lines, ["GET /one HTTP/1.1", "GET /two HTTP/1.1"]);
});

callers!(servers_that_begin_do_not_stall, |caller| {
    let internet = Internet::new();
    let rules = ["raw.test:22", "raw.test:25", "raw.test:3306", "raw.test:5432", "raw.test:7"];
    let options = rules.iter().flat_map(|rule| ["--allow", rule]);
    let attempts = attempt(
        internet.agentbox(caller).options(options),
        &[
            "tcp raw.test 22 SSH-2.0-test\r\n",
            "tcp raw.test 25 ",
            "tcp raw.test 3306 ",
            "tcp raw.test 5432 \u{1}\u{2}",
            "tcp raw.test 7 echo",
        ],
    );
    assert!(attempts.of("tcp raw.test 22 SSH-2.0-test\r\n").starts_with("answered SSH-"));
    assert!(attempts.of("tcp raw.test 25 ").starts_with("answered 220"));
    assert!(attempts.of("tcp raw.test 3306 ").starts_with("answered "));
    assert!(attempts.of("tcp raw.test 5432 \u{1}\u{2}").starts_with("answered \u{1}"));
    assert!(attempts.of("tcp raw.test 7 echo").starts_with("answered echo"));
    let (slowest, seconds) = attempts.slowest().unwrap();
    assert!(seconds < 3.0, "{slowest} took {seconds} s");
});

fn nothing_leaves_for(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let request = format!("tcp other.test 80 {}", get("other.test"));
    let attempts = attempt(agentbox, &["name other.test", "name deep.other.test", &request]);
    let seen = internet.seen();
    match attempts.successes() {
        successes if !successes.is_empty() => Err(format!("inside: {}", successes.join(", "))),
        _ if !seen.is_nothing() => Err(format!("outside: {:?}", seen.packets())),
        _ => Ok(()),
    }
}

callers!(what_is_not_allowed_is_not_reached_and_nobody_is_asked, |caller| {
    for options in [
        &["--network", "allowlist"][..],
        &["--allow", "allowed.test"],
        &["--allow", "*.other.test", "--deny", "*.other.test"],
        &["--network", "none"],
        &[],
    ] {
        let internet = Internet::new();
        nothing_leaves_for(&internet, internet.agentbox(caller).options(options)).unwrap();
        let internet = Internet::new();
        let weakened =
            |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(options);
        nothing_leaves_for(&internet, weakened(&[])).unwrap();
        if options.is_empty() || options.contains(&"none") {
            // There is no gateway to be weakened.
            continue;
        }
        let breach = nothing_leaves_for(&internet, weakened(&[Wall::Egress])).unwrap_err();
        control("egress", caller, &breach);
    }
});

callers!(what_is_blocked_is_said_once_with_what_would_allow_it, |caller| {
    let internet = Internet::new();
    let options = ["--allow", "allowed.test"];
    let attempts = attempt(
        internet.agentbox(caller).options(options),
        &[
            "name other.test",
            "name other.test",
            "tcp allowed.test 22 x",
            "tcp 198.51.100.10 5432 x",
            "tcp 10.7.0.9 80 x",
        ],
    );
    let stderr = attempts.finished.stderr();
    let lines: Vec<&str> = stderr.lines().collect();
    for line in [
        "blocked: other.test (not in allowlist); to allow: --allow other.test",
        "blocked: allowed.test:22 (allowed, but not on this port); to allow: --allow allowed.test:22",
        "blocked: 198.51.100.10:5432 (not in allowlist); to allow: --allow 198.51.100.10:5432",
        "blocked: 10.7.0.9:80 (it leads into a private network); to allow: --allow 10.7.0.9",
    ] {
        assert_eq!(lines.iter().filter(|found| **found == line).count(), 1, "{line}\n{stderr}");
    }
    let last = lines.last().unwrap();
    assert!(last.starts_with("network: 0 connections to 0 hosts, "), "{last}");
    assert!(internet.seen().is_nothing());
});

/// Whoever follows what was said reaches it.
#[test]
fn the_option_that_is_named_does_allow() {
    harness::as_caller(Caller::Single, harness::Company::Anybody, |caller| {
        let internet = Internet::new();
        let request = format!("tcp 10.7.0.9 80 {}", get("10.7.0.9"));
        let attempts = attempt(internet.agentbox(caller).options(["--allow", "10.7.0.9"]), &[&request]);
        assert!(attempts.of(&request).starts_with("answered HTTP/1.1 200"), "{}", attempts.of(&request));
    });
}
