//! Isolation 39: a token counts for whom it was made, as it was made, and for as long; the key is one.

use std::time::Duration;

use harness::{Agentbox, Caller, Internet, callers};

use super::{KEY, Proxy, connect, token, url};

callers!(no_other_token_counts, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let stranger = internet.agentbox(caller).env("SIGNING_KEY", &KEY.replace('0', "1"));
    let foreign = url(&stranger, &["--allow", "allowed.test"]);
    let short = proxy.url(&["--allow", "allowed.test", "--expires", "1s"]);
    let own = proxy.url(&["--allow", "allowed.test"]);
    let [_, claims, signature] = token(&own).split('.').collect::<Vec<_>>().try_into().unwrap();
    // {"alg":"none"}
    let none = "eyJhbGciOiJub25lIn0";
    std::thread::sleep(Duration::from_millis(1100));
    let field = |token: &str| format!("Proxy-Authorization: Bearer {token}\\r\\n");
    let attempts = [
        (String::new(), "token-missing"),
        (field(token(&foreign)), "token-invalid"),
        (field(token(&short)), "token-expired"),
        (field(&format!("{none}.{claims}.")), "token-invalid"),
        (field(&format!("{none}.{claims}.{signature}")), "token-invalid"),
        (format!("Authorization: Bearer {}\\r\\n", token(&own)), "token-missing"),
    ];
    let words = attempts.each_ref().map(|(field, _)| connect("allowed.test:443", field));
    let answers = proxy.talk(&words);
    for (answer, (field, reason)) in answers.iter().zip(&attempts) {
        assert!(answer.contains("HTTP/1.1 407") && answer.contains(reason), "{field}: {answer}");
        assert!(answer.contains("Proxy-Authenticate: Basic"), "{answer}");
    }
    assert!(internet.seen().is_nothing());
    let answers = proxy.talk(&[connect("allowed.test:443", &field(token(&own)))]);
    assert!(answers[0].contains("200 Connection established"), "{answers:?}");
});

callers!(what_was_opened_with_a_token_ends_with_it, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let field = proxy.field(&["--allow", "raw.test:7", "--expires", "3s"]);
    let answers = proxy.talk(&[format!("{}|hello", connect("raw.test:7", &field))]);
    assert!(answers[0].contains("hello") && answers[0].contains("ConnectionResetError"), "{answers:?}");
    let closed = proxy.records("closed");
    assert_eq!(closed[0]["reason"], "token-expired", "{closed:?}");
});

callers!(the_key_that_is_kept_is_one, |caller| {
    let internet = Internet::new();
    let home = caller.directory();
    let agentbox =
        internet.agentbox(caller).env("AGENTBOX_HOME", &home.path().join("state").display().to_string());
    let at_once: Vec<_> = (0..6)
        .map(|_| agentbox.clone().start_words(&["proxy", "token", "--allow", "allowed.test"]))
        .collect();
    let urls = at_once.into_iter().map(|running| running.finish().stdout());
    let words: Vec<String> = urls
        .map(|url| {
            connect("other.test:443", &format!("Proxy-Authorization: Bearer {}\\r\\n", token(url.trim_end())))
        })
        .collect();
    let proxy = Proxy::start_as_is(&internet, agentbox);
    let answers = proxy.talk(&words);
    assert_eq!(answers.len(), 6);
    assert!(answers.iter().all(|answer| answer.contains("HTTP/1.1 403")), "{answers:?}");
});

#[test]
fn what_makes_no_token_is_said() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let say = |agentbox: Agentbox, words: &[&str]| {
            let finished = agentbox.start_words(words).finish();
            assert_eq!(finished.code, 125, "{words:?}");
            finished.stderr()
        };
        let short = say(Agentbox::shipped(caller).env("SIGNING_KEY", "short"), &["proxy"]);
        assert!(
            short.contains("cause: SIGNING_KEY: it has 5 bytes, and 32 are the least\nhint: "),
            "{short}"
        );
        let agentbox = || Agentbox::shipped(caller).env("SIGNING_KEY", KEY);
        let nothing = say(agentbox(), &["proxy", "token"]);
        assert!(nothing.contains("error: the token would allow nothing\nhint: "), "{nothing}");
        let wrong = say(agentbox(), &["proxy", "token", "--allow", "https://example.com/"]);
        assert!(wrong.contains("write the name alone"), "{wrong}");
        let place = say(agentbox(), &["proxy", "--listen", "203.0.113.1:1"]);
        assert!(place.contains("error: cannot listen on 203.0.113.1:1\n"), "{place}");
    });
}
