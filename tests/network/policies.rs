//! A policy that is changed while a sandbox runs, explained before and after, and what is on record of all that.

use harness::{Agentbox, Caller, Finished, Internet, callers};
use serde_json::Value;

/// A sandbox that stays, on the host of an internet; it goes when dropped.
struct Box<'internet> {
    internet: &'internet Internet,
    caller: Caller,
    id: String,
}

impl<'internet> Box<'internet> {
    fn create(internet: &'internet Internet, caller: Caller, options: &[&str]) -> Self {
        let words: Vec<&str> = ["create"].into_iter().chain(options.iter().copied()).collect();
        let created = internet.agentbox(caller).start_words(&words).finish();
        created.assert_success();
        Self { internet, caller, id: created.stdout().trim().to_owned() }
    }

    fn agentbox(&self) -> Agentbox {
        self.internet.agentbox(self.caller)
    }

    /// Runs a command of agentbox with `ID` in it.
    fn words(&self, words: &[&str]) -> Finished {
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "ID" { &*self.id } else { word }).collect();
        self.agentbox().start_words(&words).finish()
    }

    fn json(&self, words: &[&str]) -> Value {
        let finished = self.words(words);
        finished.assert_success();
        serde_json::from_slice(&finished.stdout).unwrap()
    }
}

impl Drop for Box<'_> {
    fn drop(&mut self) {
        self.words(&["rm", "--force", "ID"]);
    }
}

/// Holds a connection, and says when it breaks.
const HOLD: &str = "
import socket, sys, time
talk = socket.create_connection((sys.argv[1], 7), 5)
talk.settimeout(20)
talk.sendall(b'one\\n'); print(talk.recv(9), flush=True)
try:
    while True:
        time.sleep(0.02); talk.sendall(b'x\\n')
        if not talk.recv(9): raise OSError
except OSError as error: print('cut', flush=True)
";

callers!(a_tighter_policy_cuts_what_is_open_and_another_does_not, |caller| {
    let internet = Internet::new();
    let sandbox = Box::create(&internet, caller, &["--allow", "raw.test:7"]);
    let hold =
        sandbox.agentbox().start_words(&["exec", &sandbox.id, "--", "python3", "-c", HOLD, "raw.test"]);
    hold.wait_for("one");
    // Something else is allowed besides: nothing is cut.
    sandbox
        .words(&["policy", "set", "ID", "--allow", "raw.test:7", "--allow", "allowed.test"])
        .assert_success();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!hold.stdout().contains("cut"), "{}", hold.stdout());
    let explained = sandbox.json(&["policy", "explain", "ID", "allowed.test", "--json"]);
    assert_eq!(explained["allowed"], true);
    assert_eq!(explained["rule"], "--allow allowed.test");
    // Nor is anything opened that was not named.
    for other in ["other.test", "raw.test:22", "203.0.113.10:80"] {
        sandbox.words(&["policy", "explain", "ID", other]).assert_code(1);
    }
    let lookup = "import socket; socket.gethostbyname('other.test')";
    assert_ne!(sandbox.words(&["exec", "ID", "--", "python3", "-c", lookup]).code, 0);

    sandbox.words(&["policy", "set", "ID", "--allow", "allowed.test"]).assert_success();
    hold.wait_for("cut");
    hold.finish().assert_success();
    sandbox.words(&["policy", "explain", "ID", "raw.test:7"]).assert_code(1);
    let again = sandbox.words(&["exec", "ID", "--", "python3", "-c", HOLD, "raw.test"]);
    assert_ne!(again.code, 0);

    // It stays so when the sandbox starts anew.
    sandbox.words(&["stop", "ID", "--time", "0"]).assert_success();
    let shown = sandbox.json(&["policy", "show", "ID", "--json"]);
    assert_eq!(shown["allow"], serde_json::json!(["allowed.test"]));

    let record = sandbox.words(&["audit", "ID"]).stdout();
    for line in [
        "policy    allowlist \"allow raw.test:7\"",
        "question  raw.test",
        "connected  #0 raw.test:7 at 203.0.113.20",
        "no-longer-allowed",
        "question  raw.test not-in-allowlist",
    ] {
        assert!(record.contains(line), "{line}\n{record}");
    }
});

callers!(a_policy_that_allows_less_of_a_host_cuts_what_is_more, |caller| {
    let internet = Internet::new();
    let sandbox = Box::create(&internet, caller, &["--allow", "raw.test:7"]);
    let hold =
        sandbox.agentbox().start_words(&["exec", &sandbox.id, "--", "python3", "-c", HOLD, "raw.test"]);
    hold.wait_for("one");
    sandbox.words(&["policy", "set", "ID", "--allow", "GET http://raw.test:7/x"]).assert_success();
    hold.wait_for("cut");
    // Nothing is closed by whoever says nothing, and what is closed can be opened again.
    sandbox.words(&["policy", "set", "ID"]).assert_refused();
    sandbox.words(&["policy", "set", "ID", "--network", "none"]).assert_success();
    sandbox.words(&["policy", "explain", "ID", "raw.test:7"]).assert_code(1);
    sandbox.words(&["policy", "set", "ID", "--allow", "raw.test:7"]).assert_success();
    let again =
        sandbox.agentbox().start_words(&["exec", &sandbox.id, "--", "python3", "-c", HOLD, "raw.test"]);
    again.wait_for("one");
});

// A connection that is being made when the policy changes is not forgotten.
callers!(a_policy_that_comes_while_somebody_is_dialled_holds, |caller| {
    let internet = Internet::new();
    internet.cut("203.0.113.20");
    let sandbox = Box::create(&internet, caller, &["--allow", "raw.test:7"]);
    let hold =
        sandbox.agentbox().start_words(&["exec", &sandbox.id, "--", "python3", "-c", HOLD, "raw.test"]);
    // It is asked for and nobody answers: the gateway dials.
    while internet.seen().packets().iter().all(|packets| packets.port != Some(7)) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    sandbox.words(&["policy", "set", "ID", "--allow", "allowed.test"]).assert_success();
    internet.mend("203.0.113.20");
    // The kernel tries again, and somebody answers now.
    assert_ne!(hold.finish().code, 0);
    let seen = internet.seen();
    let heard: Vec<_> = seen.connections().iter().filter(|connection| !connection.first.is_empty()).collect();
    assert!(heard.is_empty(), "{heard:?}");
});

callers!(what_was_reached_and_what_not_is_listed, |caller| {
    let internet = Internet::new();
    let sandbox = Box::create(&internet, caller, &["--allow", "raw.test:7"]);
    let script = "
import socket
talk = socket.create_connection(('raw.test', 7), 5); talk.sendall(b'12345'); print(talk.recv(5)); talk.close()
for host in ('other.test', '198.51.100.10'):
    try: socket.create_connection((host, 80), 3).recv(1)
    except OSError as error: pass
";
    sandbox.words(&["exec", "ID", "--", "python3", "-c", script]).assert_success();
    let list = sandbox.json(&["net", "ID", "--json"]);
    let line = |host: &str, port: Value| {
        let lines = list.as_array().unwrap().iter();
        lines
            .clone()
            .find(|line| line["host"] == host && line["port"] == port)
            .cloned()
            .unwrap_or_else(|| panic!("{list}"))
    };
    let reached = line("raw.test", 7.into());
    assert_eq!((&reached["verdict"], &reached["times"]), (&"allowed".into(), &1.into()));
    assert_eq!((&reached["sent"], &reached["received"]), (&5.into(), &5.into()));
    assert_eq!(line("other.test", Value::Null)["verdict"], "not-in-allowlist");
    assert_eq!(line("198.51.100.10", 80.into())["verdict"], "not-in-allowlist");
    let table = sandbox.words(&["net", "ID"]).stdout();
    assert!(table.contains("raw.test:7") && table.contains("not-in-allowlist"), "{table}");
});

callers!(a_sandbox_without_a_network_has_no_policy_to_change, |caller| {
    let internet = Internet::new();
    let sandbox = Box::create(&internet, caller, &[]);
    let refused = sandbox.words(&["policy", "set", "ID", "--allow", "allowed.test"]);
    refused.assert_refused();
    assert!(refused.stderr().contains("was started without a network"), "{}", refused.stderr());
    sandbox.words(&["net", "ID"]).assert_refused();
    assert_eq!(sandbox.words(&["policy", "show", "ID"]).stdout(), "network        none\n");
});

// Nothing starts with a rule that is none, and the place of it is said.
callers!(a_malformed_rule_starts_nothing, |caller| {
    let internet = Internet::new();
    let list = internet.directory().join("rules.txt");
    std::fs::write(&list, "# ours\nallowed.test\n\nhttps://example.com/\n").unwrap();
    let file = list.display().to_string();
    let refused = internet.agentbox(caller).options(["--allow-file", &file]).run(["true"]);
    refused.assert_refused();
    let stderr = refused.stderr();
    assert!(
        stderr.contains(&file) && stderr.contains("line 4") && stderr.contains("https://example.com/"),
        "{stderr}"
    );
    for rule in [
        "*",
        "*.*.com",
        "a b",
        "exa mple.com",
        "example.com:0",
        "example.com:x",
        "127.0.0.1",
        "-x.com",
        ".com",
    ] {
        internet.agentbox(caller).options(["--allow", rule]).run(["true"]).assert_code(125);
    }
    internet
        .agentbox(caller)
        .options(["--network", "none", "--allow", "x.test"])
        .run(["true"])
        .assert_refused();
    assert!(internet.seen().is_nothing());
});

callers!(what_goes_in_and_out_shows_while_it_does, |caller| {
    let internet = Internet::new();
    let sandbox = Box::create(&internet, caller, &["--allow", "raw.test:7"]);
    let alone = Box::create(&internet, caller, &[]);
    let hold =
        sandbox.agentbox().start_words(&["exec", &sandbox.id, "--", "python3", "-c", HOLD, "raw.test"]);
    hold.wait_for("one");
    sandbox.words(&[
        "exec",
        "ID",
        "--",
        "python3",
        "-c",
        "import socket; socket.gethostbyname('other.test')",
    ]);
    let line = sandbox.json(&["top", "--once", "--json", "ID"])[0].clone();
    let network = &line["network"];
    assert_eq!((network["open"].as_u64(), network["refused"].as_u64() >= Some(1)), (Some(1), true), "{line}");
    for way in ["sent", "received"] {
        assert!(network[way].as_u64().unwrap() >= 4, "{line}");
        assert!(network[format!("{way}_per_second")].as_f64().unwrap() > 0.0, "{line}");
    }
    assert_eq!(alone.json(&["top", "--once", "--json", "ID"])[0]["network"], Value::Null);
    let tables = [sandbox.words(&["top", "--once", "ID"]), alone.words(&["top", "--once", "ID"])];
    let last = |table: &Finished| table.stdout().split_whitespace().last().unwrap_or_default().to_owned();
    assert!(last(&tables[0]).ends_with('B') && last(&tables[1]) == "-", "{tables:?}");
    drop(sandbox);
    assert_ne!(hold.finish().code, 0);
});

/// Moves half a MiB, or as much as is said, each way by itself: `up` and `down` by bare TCP, `get` and `post` by HTTP. Prints
/// how many seconds that takes; of several at once those of each.
const MOVE: &str = "
import socket, sys, time
from concurrent.futures import ThreadPoolExecutor
def move(word):
    kind, _, count = word.partition('=')
    count = int(count or 1 << 19)
    port = 80 if kind in ('get', 'post') else 9000
    talk = socket.create_connection(('allowed.test' if port == 80 else 'raw.test', port), 5)
    talk.settimeout(60)
    start = time.monotonic()
    head = f'/bytes/{count} HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n'
    if kind == 'up': talk.sendall(b'sink\\n' + b'x' * count); talk.shutdown(socket.SHUT_WR)
    if kind == 'down': talk.sendall(b'send %d\\n' % count)
    if kind == 'get': talk.sendall(('GET ' + head + '\\r\\n').encode())
    if kind == 'post':
        talk.sendall(('POST ' + head + f'Content-Length: {count}\\r\\n\\r\\n').encode() + b'x' * count)
    got = 0
    while more := talk.recv(65536): got += len(more)
    assert kind == 'up' or got >= count, (word, got)
    return time.monotonic() - start
with ThreadPoolExecutor(8) as several: print(*several.map(move, sys.argv[1:]))
";

callers!(no_more_goes_in_a_second_than_may, |caller| {
    let internet = Internet::new();
    let allow = ["--allow", "raw.test:9000", "--allow", "allowed.test"];
    let limited: Vec<&str> = allow.into_iter().chain(["--bandwidth", "256K"]).collect();
    let sandbox = Box::create(&internet, caller, &limited);
    let took = |words: &[&str]| -> Vec<f64> {
        let words: Vec<&str> =
            ["exec", "ID", "--", "python3", "-c", MOVE].into_iter().chain(words.iter().copied()).collect();
        let finished = sandbox.words(&words);
        finished.assert_success();
        finished.stdout().split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    // Two seconds' bytes take no less, but for what is forgiven and what is on its way at the end.
    for kind in ["up", "down", "get", "post"] {
        let slow = took(&[kind])[0];
        assert!(slow > 1.5, "{kind}: {slow}");
    }
    // Whoever wants little has its share beside the one who wants much, and all have no more together.
    let shared = took(&["down=786432", "get=131072", "down=131072"]);
    assert!(shared[0] > 3.0 && shared[1] < shared[0] * 0.75 && shared[2] < shared[0] * 0.75, "{shared:?}");
    sandbox.words(&[&["policy", "set", "ID"][..], &allow].concat()).assert_success();
    let quick = took(&["down=786432", "get=131072", "down=131072"]);
    assert!(quick[0] < shared[0] / 2.0, "{quick:?} is not much quicker than {shared:?}");
    for (words, why) in [
        (&["--bandwidth", "1", "--allow", "raw.test"][..], "16K at least"),
        (&["--network", "none", "--bandwidth", "1M"], "no network to let"),
    ] {
        let refused = sandbox.words(&[&["policy", "set", "ID"][..], words].concat());
        refused.assert_refused();
        assert!(refused.stderr().contains(why), "{}", refused.stderr());
    }
});
