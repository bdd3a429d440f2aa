//! A sandbox that floods its gateway: it hits its own limits, and a neighbour with a network of its own is refused nothing
//! and waits no longer than beside one that keeps as many processors busy without a network.

use harness::{Agentbox, Caller, Company, Finished, Internet, Running, as_caller};
use serde_json::Value;

use crate::inside::{attempt, get};

/// How many connections the gateway of the flood allows at once, which follows from the descriptors that it may have.
const PLACES: usize = 64;
const DESCRIPTORS: usize = 512 + 2 * 128 + 2 * PLACES;

/// How many processes flood; the gateway is one more that they keep busy.
const PROCESSES: usize = 2;

/// How often each of them is refused at least, and where it ends by itself.
const ENOUGH: u64 = 500;
const MOST: u64 = 200_000;

/// How many requests the neighbour times beside each, and how often.
const REQUESTS: usize = 150;
const ROUNDS: usize = 3;

/// How many times as long the neighbour may wait. What a scheduler does with a few busy processes differs by less.
const FACTOR: f64 = 3.0;

/// Takes all places, and then connects and asks for names as fast as it can, until stdin ends or it has been enough. Prints
/// how often it was refused, and how often not.
const FLOOD: &str = r#"
import os, select, socket, struct, sys, time
places, processes, enough, most = map(int, sys.argv[1:])
address = socket.gethostbyname('raw.test')
held = [socket.create_connection((address, 7), 10) for _ in range(places)]
for talk in held: talk.sendall(b'held\n'); assert talk.recv(9) == b'held\n'
print('flooding', flush=True)
def flood():
    refused = reached = 0
    end = time.monotonic() + 30
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); asking.setblocking(False)
    asking.connect(('10.200.200.1', 53))
    while refused < enough or not select.select([sys.stdin], [], [], 0)[0]:
        if refused >= most or time.monotonic() > end: break
        burst = []
        for _ in range(50):
            try: burst.append(socket.create_connection((address, 7), 5))
            except ConnectionError: refused += 1
        for number in range(50):
            name = f'n{refused + number}'.encode()
            question = struct.pack('!6H', 7, 256, 1, 0, 0, 0) + bytes([len(name)]) + name + b'\5other\4test\0\0\1\0\1'
            # Whether it is answered does not matter.
            try: asking.send(question)
            except OSError: pass
        for talk in burst:
            try: talk.recv(1); reached += 1
            except ConnectionError: refused += 1
            talk.close()
    return f'{refused} {reached}\n'.encode()
read, write = os.pipe()
for _ in range(processes):
    if not os.fork():
        try: os.write(write, flood())
        finally: os._exit(0)
os.close(write)
for _ in range(processes): os.wait()
for line in os.read(read, 4096).split(b'\n')[:-1]: print(line.decode())
"#;

/// Keeps processors busy in the same way, without a network.
const BURN: &str = r#"
import os, select, sys, time
print('burning', flush=True)
end = time.monotonic() + 30
for _ in range(int(sys.argv[1])):
    if not os.fork():
        while time.monotonic() < end and not select.select([sys.stdin], [], [], 0)[0]: pass
        os._exit(0)
for _ in range(int(sys.argv[1])): os.wait()
"#;

/// Does so many requests for each line that it reads, each with its question for the name, and prints how long each took.
const NEIGHBOUR: &str = r#"
import json, socket, sys, time
def ask():
    start = time.monotonic()
    talk = socket.create_connection(('allowed.test', 80), 30)
    talk.sendall(b'GET /small HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n')
    got = b''
    while more := talk.recv(65536): got += more
    assert got.startswith(b'HTTP/1.1 200'), got
    return time.monotonic() - start
ask()
for line in sys.stdin:
    print(json.dumps({'round': int(line), 'seconds': [ask() for _ in range(int(sys.argv[1]))]}), flush=True)
"#;

/// A neighbour, and how many rounds it has done.
struct Neighbour {
    running: Running,
    rounds: usize,
}

impl Neighbour {
    fn start(agentbox: Agentbox) -> Self {
        let count = REQUESTS.to_string();
        let running =
            agentbox.options(["--allow", "allowed.test"]).start(["python3", "-c", NEIGHBOUR, &count]);
        Self { running, rounds: 0 }
    }

    /// How long each request of one more round takes.
    fn round(&mut self) -> Vec<f64> {
        self.rounds += 1;
        self.running.write(format!("{}\n", self.rounds).as_bytes());
        self.running.wait_for(&format!("{{\"round\": {}, ", self.rounds));
        // A line is written at once, but may be read in parts.
        loop {
            let said = self.running.stdout();
            let line = said.lines().nth(self.rounds - 1).and_then(|line| serde_json::from_str(line).ok());
            let seconds = line.as_ref().and_then(|line: &Value| line["seconds"].as_array());
            if let Some(seconds) = seconds {
                return seconds.iter().map(|second| second.as_f64().unwrap()).collect();
            }
        }
    }
}

/// The one in the middle, and the one that only a twentieth is above.
fn median_and_p95(mut seconds: Vec<f64>) -> (f64, f64) {
    seconds.sort_by(f64::total_cmp);
    (seconds[seconds.len() / 2], seconds[seconds.len() * 95 / 100])
}

fn flood(internet: &Internet, caller: Caller) -> Running {
    let mut prefix = internet.prefix();
    prefix.extend(["/usr/bin/prlimit".to_owned(), format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}")]);
    let agentbox = Agentbox::shipped(caller).behind(prefix).options(["--allow", "raw.test:7"]);
    let numbers = [PLACES as u64, PROCESSES as u64, ENOUGH, MOST].map(|number| number.to_string());
    let argv = ["python3", "-c", FLOOD].into_iter().chain(numbers.iter().map(String::as_str));
    let running = agentbox.start(argv);
    running.wait_for("flooding");
    running
}

/// How often each process of a flood was refused; it has reached nobody.
#[track_caller]
fn refusals(finished: &Finished) -> Vec<u64> {
    let said = finished.assert_success().stdout();
    let counts = said.lines().skip(1).map(|line| {
        let (refused, reached) = line.split_once(' ').unwrap();
        assert_eq!(reached, "0", "{said}");
        refused.parse().unwrap()
    });
    counts.collect()
}

/// The flood was kept to its places, which is on record. What is said of it is bounded.
#[track_caller]
fn assert_limited(internet: &Internet, caller: Caller, flood: &Finished) {
    let stderr = flood.stderr();
    let lines = || stderr.lines().filter(|line| line.starts_with("blocked: "));
    assert_eq!(lines().next_back(), Some("blocked: more than can be shown here"), "{stderr}");
    assert!(lines().count() < 50, "{stderr}");
    let id = stderr.split("`agentbox audit ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let record = internet.agentbox(caller).start_words(&["audit", id]).finish();
    let record = record.assert_success().stdout();
    let refused = record.lines().find(|line| line.contains("too-many-connections"));
    assert!(refused.is_some_and(|line| line.contains("raw.test:7")), "{record}");
}

/// As the caller without any cgroup, whose sandboxes have nothing but the scheduler between them, and alone, as it takes
/// time. Once is enough for the rest: the gateway is the same for all.
#[test]
fn a_flood_leaves_its_neighbours_alone() {
    as_caller(Caller::Single, Company::Nobody, |caller| {
        let internet = Internet::new();
        let mut neighbour = Neighbour::start(internet.agentbox(caller));
        let (mut burnt, mut flooded) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let processes = (PROCESSES + 1).to_string();
            let burn = internet.agentbox(caller).start(["python3", "-c", BURN, &processes]);
            burn.wait_for("burning");
            burnt.extend(neighbour.round());
            burn.finish().assert_success();

            let flood = flood(&internet, caller);
            flooded.extend(neighbour.round());
            let flood = flood.finish();
            let refused = refusals(&flood);
            // Each of them went on all the time.
            let went_on = |count: &u64| (ENOUGH..MOST).contains(count);
            assert!(refused.len() == PROCESSES && refused.iter().all(went_on), "{refused:?}");
            assert_limited(&internet, caller, &flood);
        }
        let finished = neighbour.running.finish();
        assert!(!finished.assert_success().stderr().contains("blocked"), "{}", finished.stderr());
        let seen = internet.seen();
        assert_eq!(seen.connections_to("203.0.113.10:80").len(), 1 + 2 * ROUNDS * REQUESTS);
        // Of the flood, nothing but what it had places for left.
        assert_eq!(seen.connections_to("203.0.113.20:7").len(), ROUNDS * PLACES);
        let (burnt, flooded) = (median_and_p95(burnt), median_and_p95(flooded));
        eprintln!("median and p95 beside one that is busy {burnt:?}, beside a flood {flooded:?}");
        assert!(flooded.0 < FACTOR * burnt.0 && flooded.1 < FACTOR * burnt.1, "{flooded:?} {burnt:?}");
    });
}

/// Begins many requests and goes on with each by a letter now and then, and in between does one that is whole. Prints how
/// often that was answered while others were slow, and what came of those.
const SLOW: &str = r#"
import collections, select, socket, time
def whole():
    talk = socket.create_connection(('allowed.test', 80), 30)
    talk.sendall(b'GET /whole HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n')
    return talk.recv(65536).startswith(b'HTTP/1.1 200')
slow = [socket.create_connection(('allowed.test', 80), 30) for _ in range(200)]
for talk in slow: talk.sendall(b'GET /slow HTTP/1.1\r\nHost: allowed.test\r\nX: ')
answered, ends, start = [], collections.Counter(), time.monotonic()
print('slow', flush=True)
while slow and time.monotonic() - start < 60:
    answered.append(whole())
    time.sleep(0.5)
    for talk in select.select(slow, [], [], 0)[0]:
        slow.remove(talk); ends[talk.recv(12)] += 1
    for talk in slow:
        try: talk.send(b'x')
        except OSError: pass
print(all(answered) and len(answered) > 3, dict(ends))
"#;

/// Once, as the time that a client is given passes for each caller in the same way.
#[test]
fn those_who_are_slow_are_ended_and_hold_up_nobody() {
    as_caller(Caller::Subordinate, Company::Anybody, |caller| {
        let internet = Internet::new();
        let slow =
            internet.agentbox(caller).options(["--allow", "allowed.test"]).start(["python3", "-c", SLOW]);
        slow.wait_for("slow\n");
        let request = format!("tcp allowed.test 80 {}", get("allowed.test"));
        let neighbour = attempt(internet.agentbox(caller).options(["--allow", "allowed.test"]), &[&request]);
        assert!(neighbour.of(&request).starts_with("answered HTTP/1.1 200"), "{}", neighbour.of(&request));
        let finished = slow.finish();
        assert_eq!(finished.assert_success().stdout(), "slow\nTrue {b'HTTP/1.1 408': 200}\n");
        let seen = internet.seen();
        let requests = || seen.connections().iter().flat_map(|connection| &connection.requests);
        assert!(requests().count() > 4 && requests().all(|request| !request.line.contains("slow")));
        // What they had begun did not leave.
        assert_eq!(seen.connections().iter().filter(|connection| connection.first.is_empty()).count(), 200);
    });
}
