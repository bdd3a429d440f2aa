//! What a token allows goes through the owner's own proxy, where there is one; what it does not is not asked of that either.

use harness::{Internet, callers};

use super::{KEY, Proxy, connect};
use crate::upstream::Proxy as Owners;

const OWNERS: &str = "http://me:pass@127.0.0.1:3128";

callers!(what_is_allowed_goes_through_the_owners_proxy, |caller| {
    for by_option in [true, false] {
        let internet = Internet::new();
        let mut owners = Owners::start(&internet);
        let agentbox = internet.agentbox(caller).env("SIGNING_KEY", KEY);
        let proxy = if by_option {
            Proxy::start_with(&internet, agentbox, &["--upstream-proxy", OWNERS])
        } else {
            Proxy::start_with(&internet, agentbox.env("AGENTBOX_UPSTREAM_PROXY", OWNERS), &[])
        };
        let field =
            proxy.field(&["--allow", "allowed.test", "--allow", "raw.test:22", "--allow", "refused.test"]);
        let get = |host: &str| format!("GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n{field}\\r\\n");
        let answers = proxy.talk(&[
            connect("other.test:443", &field),
            get("other.test"),
            connect("raw.test:22", &field),
            get("allowed.test"),
            connect("refused.test:443", &field),
        ]);
        let expected =
            ["HTTP/1.1 403", "HTTP/1.1 403", "SSH-2.0-world", "HTTP/1.1 200 OK", "refused-upstream"];
        for (answer, expected) in answers.iter().zip(expected) {
            assert!(answer.contains(expected), "{expected}: {answer}");
        }
        let who = "Proxy-Authorization: Basic bWU6cGFzcw==";
        let expected = ["allowed.test:80", "raw.test:22", "refused.test:443"];
        let mut asked = owners.asked(3);
        asked.sort();
        assert_eq!(asked, expected.map(|place| format!("CONNECT {place} HTTP/1.1 | {who}")));
        // Nobody else was asked for a name, and no word of either secret went on.
        assert_eq!(internet.seen().questions(), []);
        assert!(!proxy.running.stderr().contains("pass"), "{}", proxy.running.stderr());
    }
});
