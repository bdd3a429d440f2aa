//! What runs inside a sandbox in these tests, and what it says.

use std::collections::BTreeMap;
use std::io::Write as _;

use harness::{Agentbox, Caller, Finished};
use serde_json::Value;

/// Tries what it is given, each as words: `tcp HOST PORT TEXT`, `twice HOST PORT TEXT` for one connection after the other,
/// `udp HOST PORT TEXT`, `sctp HOST PORT`, `icmp HOST`, `raw HOST PROTOCOL`, `unix NAME` for an abstract socket, or `name
/// NAME`. Several are tried at once, as most of them wait. Prints JSON: what came of each, and how many seconds it took.
/// Connections are made by address family, as programs do that know of no proxy.
const TRY: &str = r#"
import json, socket, sys, time
from concurrent.futures import ThreadPoolExecutor

def tcp(host, port, text):
    with socket.create_connection((host, int(port)), 3) as talk:
        talk.settimeout(3)
        talk.sendall(text.encode())
        got = talk.recv(65536)
        return 'answered ' + got.decode(errors='replace') if got else 'closed'

def twice(host, port, text):
    tcp(host, port, text)
    return tcp(host, port, text)

def udp(host, port, text):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    talk = socket.socket(family, socket.SOCK_DGRAM)
    talk.settimeout(3)
    # Who is connected is told that nobody is there.
    talk.connect((host, int(port)))
    talk.send(text.encode())
    return 'answered ' + talk.recv(65536).decode(errors='replace')

def sctp(host, port):
    with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_STREAM, 132) as talk:
        talk.settimeout(3)
        talk.connect((host, int(port)))
        return 'answered'

def icmp(host):
    is_new = ':' in host
    family, protocol = (socket.AF_INET6, 58) if is_new else (socket.AF_INET, 1)
    talk = socket.socket(family, socket.SOCK_DGRAM, protocol)
    talk.settimeout(3)
    talk.sendto(bytes([128 if is_new else 8, 0, 0, 0, 0, 7, 0, 1]) + b'secret', (host, 0))
    return 'answered ' + repr(talk.recv(65536))

def raw(host, protocol):
    talk = socket.socket(socket.AF_INET, socket.SOCK_RAW, int(protocol))
    talk.sendto(b'secret', (host, 0))
    return 'answered'

def unix(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.connect('\0' + name)
        return 'answered'

def name(name):
    return 'found ' + ' '.join(sorted({found[4][0] for found in socket.getaddrinfo(name, 80)}))

def attempt(words):
    kind, *rest = words.split(' ', 3)
    start = time.monotonic()
    try:
        result = globals()[kind](*rest)
    except OSError as error:
        result = 'failed ' + (type(error).__name__ if error.errno is None else str(error))
    return result, time.monotonic() - start

with ThreadPoolExecutor(8) as several:
    print(json.dumps(dict(zip(sys.argv[1:], several.map(attempt, sys.argv[1:])))))
"#;

/// What came of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// `answered …`, `found …`, `closed` or `failed …`.
    pub(crate) text: String,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
}

/// What came of each attempt, and of the run.
pub(crate) struct Attempts {
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    pub(crate) finished: Finished,
}

impl Attempts {
    /// What came of one.
    #[track_caller]
    pub(crate) fn of(&self, attempt: &str) -> &str {
        &self.outcomes[attempt].text
    }

    /// Whether any of them was answered or found, and which.
    pub(crate) fn successes(&self) -> Vec<String> {
        let succeeded = |outcome: &Outcome| {
            outcome.text.starts_with("answered")
                || outcome.text.starts_with("found")
                || outcome.text == "closed"
        };
        let those = self.outcomes.iter().filter(|(_, outcome)| succeeded(outcome));
        those.map(|(attempt, outcome)| format!("{attempt}: {}", outcome.text)).collect()
    }

    /// The attempt that took longest.
    pub(crate) fn slowest(&self) -> Option<(&String, f64)> {
        let times = self.outcomes.iter().map(|(attempt, outcome)| (attempt, outcome.seconds));
        times.max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// Tries all of it in a sandbox.
#[track_caller]
pub(crate) fn attempt(agentbox: Agentbox, attempts: &[&str]) -> Attempts {
    let argv = ["/usr/bin/python3", "-c", TRY].into_iter().chain(attempts.iter().copied());
    let finished = agentbox.run(argv);
    let parsed: Result<BTreeMap<String, Value>, _> = serde_json::from_slice(&finished.stdout);
    let Ok(parsed) = parsed else { panic!("no outcomes in {}\n{}", finished.stdout(), finished.stderr()) };
    let outcome = |value: Value| Outcome {
        text: value[0].as_str().unwrap().to_owned(),
        seconds: value[1].as_f64().unwrap(),
    };
    let outcomes = parsed.into_iter().map(|(attempt, value)| (attempt, outcome(value))).collect();
    Attempts { outcomes, finished }
}

/// A request by plain HTTP.
pub(crate) fn get(host: &str) -> String {
    format!("GET /here HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Says what a check found without its wall: not by the test runner's own output, which hides what successful tests print.
pub(crate) fn control(wall: &str, caller: Caller, breach: &str) {
    let _ = writeln!(std::io::stderr(), "negative control: {wall}: {caller:?}: {breach}");
}
