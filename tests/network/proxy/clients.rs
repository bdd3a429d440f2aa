//! Programs as they are reach what they may through it, and are told why where they may not.

use harness::{Internet, callers};
use serde_json::Value;

use super::{PLACE, Proxy, connect, requests, text};

const FETCH: &str = "\
import sys, urllib.request
for url in sys.argv[1:]: print(urllib.request.urlopen(url, timeout=10).read().decode())";

callers!(programs_reach_what_they_may, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let url = proxy.url(&["--allow", "allowed.test", "--name", "ci"]);
    proxy.curl(&url, &["https://allowed.test/curl", "http://allowed.test/plain"]).assert_success();
    let ca = text(&internet.ca());
    let variables = [
        format!("HTTPS_PROXY={url}"),
        format!("HTTP_PROXY={url}"),
        format!("http_proxy={url}"),
        format!("SSL_CERT_FILE={ca}"),
        format!("GIT_SSL_CAINFO={ca}"),
    ];
    let python =
        ["/usr/bin/python3", "-c", FETCH, "https://allowed.test/urllib", "http://allowed.test/urllib-plain"];
    proxy.client(&variables, &python).assert_success();
    // There is no repository, and that is what it is told.
    let git = proxy.client(&variables, &["git", "ls-remote", "https://allowed.test/repository"]);
    assert!(!git.stderr().contains("407"), "{}", git.stderr());

    let requests = requests(&internet);
    let lines: Vec<&str> = requests.iter().map(|request| request.line.as_str()).collect();
    for line in
        ["GET /curl HTTP/1.1", "GET /plain HTTP/1.1", "GET /urllib HTTP/1.1", "GET /urllib-plain HTTP/1.1"]
    {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("GET /repository/info/refs")), "{lines:?}");
    let opened = proxy.records("opened");
    assert!(opened.len() >= 5, "{opened:?}");
    assert!(
        opened.iter().all(|record| record["holder"] == "ci" && record["host"] == "allowed.test"),
        "{opened:?}"
    );
});

callers!(whoever_may_not_is_told_why, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let url = proxy.url(&["--allow", "allowed.test"]);
    let finished = proxy.curl(&url, &["http://other.test/"]);
    let body: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(body["reason"], "not-in-allowlist");
    assert_eq!(body["host"], "other.test");
    assert_eq!(body["hint"], "to allow it: agentbox proxy token --allow other.test");
    let finished = proxy.curl(&url, &["https://other.test/"]);
    assert_eq!(finished.code, 56, "{}", finished.stderr());
    assert!(finished.stderr().contains("403"), "{}", finished.stderr());
    let finished = proxy.curl(&format!("http://{}", PLACE), &["https://allowed.test/"]);
    assert!(finished.stderr().contains("407"), "{}", finished.stderr());
    assert!(internet.seen().is_nothing());
    assert_eq!(proxy.records("refused").len(), 2);
    let strangers = proxy.records("turned-away");
    assert_eq!(strangers[0]["reason"], "token-missing");
});

callers!(servers_that_begin_do_not_stall, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let field = proxy.field(&["--allow", "raw.test:*"]);
    let start = std::time::Instant::now();
    let answers = proxy.talk(&[
        format!("{}|QUIT\\r\\n", connect("raw.test:25", &field)),
        // What is said before the tunnel is there goes through it afterwards, and is no request to the proxy.
        format!("{}QUIT\\r\\n", connect("raw.test:25", &field)),
    ]);
    for answer in answers {
        assert!(
            answer.contains("200 Connection established") && answer.contains("220 mail.test"),
            "{answer}"
        );
        assert!(answer.contains("221 bye"), "{answer}");
    }
    assert!(start.elapsed().as_secs() < 3);
});

callers!(requests_on_one_connection_go_each_their_way, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let url = proxy.url(&["--allow", "allowed.test", "--allow", "other.test"]);
    let finished = proxy.curl(
        &url,
        &["http://allowed.test/1", "http://other.test/2", "http://other.test/3", "http://allowed.test/4"],
    );
    finished.assert_success();
    let requests = requests(&internet);
    let mut lines: Vec<(&str, Option<&str>)> =
        requests.iter().map(|request| (request.line.as_str(), request.host.as_deref())).collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            ("GET /1 HTTP/1.1", Some("allowed.test")),
            ("GET /2 HTTP/1.1", Some("other.test")),
            ("GET /3 HTTP/1.1", Some("other.test")),
            ("GET /4 HTTP/1.1", Some("allowed.test")),
        ]
    );
    for request in &requests {
        let names: Vec<String> = request.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(!names.iter().any(|name| name.starts_with("proxy-")), "{names:?}");
    }
    // The same two are asked over one connection, so that no other was made.
    assert_eq!(internet.seen().connections_to("198.51.100.10:80").len(), 1);
});
