//! Resolvers that lie, say nothing, or say one thing now and another later: whoever is dialled is whom was checked, and what
//! cannot be found out is refused in time and with a reason.

use harness::{Internet, callers};

use crate::inside::{attempt, get};

callers!(what_a_resolver_says_is_checked_and_only_that_is_dialled, |caller| {
    let internet = Internet::new();
    let names = [
        "truncate.test",
        "several.test",
        "alias.test",
        "six.test",
        "mixed.test",
        "servfail.test",
        "nxdomain.test",
        "alias-missing.test",
        "alias-loop.test",
        "nowhere.test",
    ];
    let options = ["flip.test"].iter().chain(&names).flat_map(|name| ["--allow", *name]);
    let requests = names.map(|name| format!("tcp {name} 80 {}", get(name)));
    // The second answer for this name is a private address.
    let twice = format!("twice flip.test 80 {}", get("flip.test"));
    let all: Vec<&str> = std::iter::once(&twice).chain(&requests).map(String::as_str).collect();
    let outcome = attempt(internet.agentbox(caller).options(options), &all);
    let answered: Vec<&str> = names
        .iter()
        .zip(&requests)
        .filter(|(_, request)| outcome.of(request).starts_with("answered HTTP/1.1 200"))
        .map(|(name, _)| *name)
        .collect();
    assert!(
        ["truncate.test", "several.test", "alias.test", "six.test", "mixed.test"]
            .iter()
            .all(|name| answered.contains(name)),
        "{answered:?} {:?}",
        outcome.outcomes
    );
    assert!(names[5..].iter().all(|name| !answered.contains(name)), "{answered:?}");
    let seen = internet.seen();
    assert_eq!(seen.connections_to("10.7.0.9:80"), Vec::<&harness::Connection>::new());
    let flipped = seen.connections().iter().flat_map(|connection| &connection.requests);
    assert!(flipped.filter(|request| request.host.as_deref() == Some("flip.test")).count() <= 1);
    let stderr = outcome.finished.stderr();
    assert!(stderr.contains("blocked: nxdomain.test:80 (there is no such host)"), "{stderr}");
    assert!(stderr.contains("blocked: servfail.test:80 ("), "{stderr}");
});

callers!(a_resolver_that_lies_or_is_silent_is_not_waited_for_without_end, |caller| {
    let internet = Internet::new();
    let script = "
import socket, sys, time
for name in sys.argv[1:]:
    start = time.monotonic()
    try: socket.create_connection((name, 80), 40).recv(1); print('answered')
    except OSError as error: print(type(error).__name__, time.monotonic() - start < 30)
";
    let options = ["--allow", "timeout.test", "--allow", "lie.test"];
    let finished =
        internet.agentbox(caller).options(options).run(["python3", "-c", script, "timeout.test", "lie.test"]);
    finished.assert_success();
    assert_eq!(finished.stdout(), "ConnectionResetError True\nConnectionResetError True\n");
    assert!(
        finished.stderr().contains("blocked: timeout.test:80 (its address could not be found out)"),
        "{}",
        finished.stderr()
    );
    assert_eq!(internet.seen().connections(), []);
});
